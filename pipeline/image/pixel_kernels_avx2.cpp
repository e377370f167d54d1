#include "pipeline/image/pixel_kernels.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cstring>

#include <immintrin.h>

// Only what follows uses AVX2, and it is called only after a check at run time; what the headers above define stays as
// it is.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif

#include "pipeline/image/pixel_kernels_vector.hpp"

namespace drawpoint {
namespace {

using Layout = PackedWeights::Layout;

constexpr std::uint32_t group = 8;   // outputs of a horizontal step
constexpr std::int32_t half = 1 << (FilterTable::horizontal_bits - 1);

struct Avx2 {
    typedef std::int16_t Words __attribute__((vector_size(32)));
    typedef std::uint16_t Unsigned __attribute__((vector_size(32)));

    static inline Words widen(const std::uint8_t* from) {
        return reinterpret_cast<Words>(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
    }
    static inline Words rounded(Words a, std::int16_t b) {
        return reinterpret_cast<Words>(_mm256_mulhrs_epi16(reinterpret_cast<__m256i>(a), _mm256_set1_epi16(b)));
    }
    static inline Unsigned high_unsigned(Unsigned a, std::uint16_t b) {
        return reinterpret_cast<Unsigned>(
            _mm256_mulhi_epu16(reinterpret_cast<__m256i>(a), _mm256_set1_epi16(static_cast<std::int16_t>(b))));
    }
    static inline Words green(Words blue, Words red) {
        const auto cb = reinterpret_cast<__m256i>(blue), cr = reinterpret_cast<__m256i>(red);
        const __m256i weights = _mm256_set1_epi32(static_cast<std::int32_t>((-23401u << 16) | (0xFFFFu & -11277u)));
        const __m256i rounding = _mm256_set1_epi32(32768);
        const __m256i low = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpacklo_epi16(cb, cr), weights), rounding);
        const __m256i high = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpackhi_epi16(cb, cr), weights), rounding);
        return reinterpret_cast<Words>(_mm256_packs_epi32(_mm256_srai_epi32(low, 16), _mm256_srai_epi32(high, 16)));
    }
    static inline void store_pairs(std::uint8_t* to, Words even, Words odd) {
        const __m256i in_pairs =
            _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
        const __m256i bytes = _mm256_packus_epi16(reinterpret_cast<__m256i>(even), reinterpret_cast<__m256i>(odd));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_shuffle_epi8(bytes, in_pairs));
    }
};

inline __m128i load16(const std::uint8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }

void deinterleave(const std::uint8_t* from, std::size_t pixels, std::uint8_t* rgb, std::size_t plane) {
    // Where each of 16 pixels' channel lies in three loads; a negative place gives zero.
    alignas(16) std::int8_t places[3][3][16];
    for (int c = 0; c < 3; ++c)
        for (int part = 0; part < 3; ++part)
            for (int i = 0; i < 16; ++i) {
                const int place = 3 * i + c - 16 * part;
                places[c][part][i] = static_cast<std::int8_t>(place >= 0 && place < 16 ? place : -1);
            }
    for (std::size_t i = 0; i < pixels; i += 16, from += 48) {
        const __m128i parts[3] = {load16(from), load16(from + 16), load16(from + 32)};
        for (std::size_t c = 0; c < 3; ++c) {
            __m128i bytes = _mm_setzero_si128();
            for (std::size_t part = 0; part < 3; ++part)
                bytes = _mm_or_si128(
                    bytes,
                    _mm_shuffle_epi8(parts[part], _mm_load_si128(reinterpret_cast<const __m128i*>(places[c][part]))));
            _mm_storeu_si128(reinterpret_cast<__m128i*>(rgb + c * plane + i), bytes);
        }
    }
}

void interleave(const std::uint8_t* rgb, std::size_t plane, std::size_t pixels, std::uint8_t* to) {
    // Which pixel of channel c each of 16 bytes is, in three stores; a negative place gives zero.
    alignas(16) std::int8_t places[3][3][16];
    for (int part = 0; part < 3; ++part)
        for (int c = 0; c < 3; ++c)
            for (int i = 0; i < 16; ++i) {
                const int byte = 16 * part + i;
                places[part][c][i] = static_cast<std::int8_t>(byte % 3 == c ? byte / 3 : -1);
            }
    std::size_t i = 0;
    for (; i + 16 <= pixels; i += 16, to += 48)
        for (std::size_t part = 0; part < 3; ++part) {
            __m128i bytes = _mm_setzero_si128();
            for (std::size_t c = 0; c < 3; ++c)
                bytes = _mm_or_si128(
                    bytes, _mm_shuffle_epi8(load16(rgb + c * plane + i),
                                            _mm_load_si128(reinterpret_cast<const __m128i*>(places[part][c]))));
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16 * part), bytes);
        }
    portable_kernels().interleave(rgb + i, plane, pixels - i, to);
}

// The first output of step `index`: the last step overlaps its neighbour where the width is not a multiple of 8.
inline std::uint32_t step_begin(std::uint32_t index, std::uint32_t outputs) {
    return index * group + group <= outputs ? index * group : outputs - group;
}

inline std::uint32_t steps_of(const FilterTable& table) { return (table.outputs + group - 1) / group; }

// Where the taps of 4 outputs begin, and how many bytes they span.
struct Span {
    std::uint32_t base, bytes;
};
inline Span span_of(const FilterTable& table, std::uint32_t o) {
    const std::uint32_t begin = table.first[o], end = table.first[o + 3];   // monotonic, falling if flipped
    const std::uint32_t least = begin < end ? begin : end;
    return {least, begin + end - 2 * least + (table.taps + 1) / 2 * 2};
}

// near: per step the two bases, then 32 places, then per pair of taps 8 pairs of weights. The taps of 4 outputs lie
// within one load of 16 bytes.
struct NearStep {
    std::uint32_t base[2], unused[6];
    std::uint8_t places[32];
};

std::size_t near_step_bytes(const FilterTable& table) { return sizeof(NearStep) + (table.taps + 1) / 2 * 32; }

void pack_near(const FilterTable& table, PackedWeights& packed) {
    const std::uint32_t pairs = (table.taps + 1) / 2;
    std::byte* to = packed.bytes(steps_of(table) * near_step_bytes(table));
    for (std::uint32_t step = 0; step < steps_of(table); ++step, to += near_step_bytes(table)) {
        const std::uint32_t begin = step_begin(step, table.outputs);
        NearStep head{};
        for (std::uint32_t lane = 0; lane < 2; ++lane) {
            head.base[lane] = span_of(table, begin + 4 * lane).base;
            for (std::uint32_t i = 0; i < 4; ++i) {
                const std::uint32_t place = table.first[begin + 4 * lane + i] - head.base[lane];
                std::uint8_t* places = head.places + 16 * lane + 4 * i;
                places[0] = static_cast<std::uint8_t>(place);
                places[2] = static_cast<std::uint8_t>(place + 1);
                places[1] = places[3] = 0x80;   // zero, and still so after a few more are added
            }
        }
        std::memcpy(to, &head, sizeof head);
        for (std::uint32_t pair = 0; pair < pairs; ++pair)
            for (std::uint32_t i = 0; i < group; ++i)
                std::memcpy(to + sizeof head + pair * 32 + i * 4,
                            table.narrow + std::size_t{begin + i} * table.stride + 2 * pair, 4);
    }
}

// along_taps: per step, and per 8 taps, for i < 4 the weights of output i and of output 4 + i.
void pack_along_taps(const FilterTable& table, PackedWeights& packed) {
    const std::uint32_t parts = (table.taps + 7) / 8;
    std::byte* to = packed.bytes(std::size_t{steps_of(table)} * parts * 128);
    for (std::uint32_t step = 0; step < steps_of(table); ++step)
        for (std::uint32_t part = 0; part < parts; ++part)
            for (std::uint32_t i = 0; i < 4; ++i)
                for (const std::uint32_t output : {i, i + 4}) {
                    const std::uint16_t* weights =
                        table.narrow + std::size_t{step_begin(step, table.outputs) + output} * table.stride;
                    const std::uint32_t here = table.stride - 8 * part < 8 ? 4 : 8;
                    std::memset(to, 0, 16);
                    std::memcpy(to, weights + 8 * part, 2 * here);
                    to += 16;
                }
}

void pack(const FilterTable& table, PackedWeights& packed) {
    packed.layout = Layout::as_in_table;
    if (table.outputs < group)
        return;
    bool near = true;
    for (std::uint32_t step = 0; step < steps_of(table); ++step)
        for (const std::uint32_t lane : {0u, 4u})
            near = near && span_of(table, step_begin(step, table.outputs) + lane).bytes <= 16;
    packed.layout = near ? Layout::near : Layout::along_taps;
    if (near)
        pack_near(table, packed);
    else
        pack_along_taps(table, packed);
}

template <bool Stream>
inline void store_sums(const FloatRows& out, std::size_t c, std::uint32_t at, __m256i sums) {
    const __m256 levels = _mm256_cvtepi32_ps(_mm256_srai_epi32(sums, FilterTable::horizontal_bits));
    const __m256 values = _mm256_add_ps(_mm256_mul_ps(levels, _mm256_set1_ps(out.normalization.scale[c])),
                                        _mm256_set1_ps(out.normalization.bias[c]));
    float* const to = out.red + c * out.plane + at;
    if constexpr (Stream)
        _mm256_stream_ps(to, values);
    else
        _mm256_storeu_ps(to, values);
}

template <bool>
inline void store_sums(const LevelRows& out, std::size_t c, std::uint32_t at, __m256i sums) {
    const __m256i levels = _mm256_srai_epi32(sums, FilterTable::horizontal_bits);
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(levels), _mm256_extracti128_si256(levels, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out.red + c * out.plane + at), _mm_packus_epi16(words, words));
}

template <std::uint32_t Pairs, bool Stream, class Rows>
void horizontal_near(const std::uint8_t* row, std::size_t plane, const FilterTable& table, const std::byte* packed,
                     const Rows& out) {
    const std::uint32_t pairs = Pairs != 0 ? Pairs : (table.taps + 1) / 2;
    const __m256i next = _mm256_set1_epi32(0x00020002);
    const std::size_t step_bytes = near_step_bytes(table);
    for (std::uint32_t step = 0; step < steps_of(table); ++step, packed += step_bytes) {
        const auto& head = *reinterpret_cast<const NearStep*>(packed);
        const auto* weights = reinterpret_cast<const __m256i*>(packed + sizeof head);
        const std::uint32_t begin = step_begin(step, table.outputs);
        for (std::size_t c = 0; c < 3; ++c) {
            const std::uint8_t* from = row + c * plane;
            const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(from + head.base[0])),
                                                          load16(from + head.base[1]), 1);
            __m256i places = _mm256_load_si256(reinterpret_cast<const __m256i*>(head.places));
            __m256i sums = _mm256_set1_epi32(half);
            for (std::uint32_t pair = 0; pair < pairs; ++pair) {
                sums = _mm256_add_epi32(
                    sums, _mm256_madd_epi16(_mm256_shuffle_epi8(bytes, places), _mm256_load_si256(weights + pair)));
                places = _mm256_add_epi8(places, next);
            }
            store_sums<Stream>(out, c, begin, sums);
        }
    }
}

template <bool Stream, class Rows>
void horizontal_along_taps(const std::uint8_t* row, std::size_t plane, const FilterTable& table,
                           const std::byte* packed, const Rows& out) {
    const std::uint32_t parts = (table.taps + 7) / 8;
    for (std::uint32_t step = 0; step < steps_of(table); ++step, packed += parts * 128) {
        const std::uint32_t begin = step_begin(step, table.outputs);
        const std::uint32_t* first = table.first + begin;
        for (std::size_t c = 0; c < 3; ++c) {
            const std::uint8_t* from = row + c * plane;
            __m256i sums[4] = {};
            const auto* weights = reinterpret_cast<const __m256i*>(packed);
            for (std::uint32_t part = 0; part < parts; ++part, from += 8, weights += 4)
                for (std::size_t i = 0; i < 4; ++i) {
                    const __m128i bytes =
                        _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + first[i])),
                                           _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + first[i + 4])));
                    sums[i] = _mm256_add_epi32(
                        sums[i], _mm256_madd_epi16(_mm256_cvtepu8_epi16(bytes), _mm256_load_si256(weights + i)));
                }
            const __m256i all =
                _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
            store_sums<Stream>(out, c, begin, _mm256_add_epi32(all, _mm256_set1_epi32(half)));
        }
    }
}

template <bool Stream, class Rows>
void horizontal_any(const std::uint8_t* row, std::size_t plane, const FilterTable& table, PackedWeights& packed,
                    const Rows& out) {
    const auto kernel = packed.layout == Layout::along_taps ? horizontal_along_taps<Stream, Rows>
                        : table.taps <= 2                   ? horizontal_near<1, Stream, Rows>
                        : table.taps <= 4                   ? horizontal_near<2, Stream, Rows>
                        : table.taps <= 6                   ? horizontal_near<3, Stream, Rows>
                                                            : horizontal_near<0, Stream, Rows>;
    kernel(row, plane, table, packed.bytes(0), out);
}

template <class Rows>
void horizontal(const std::uint8_t* row, std::size_t plane, const FilterTable& table, PackedWeights& packed,
                const Rows& out) {
    if (packed.layout == Layout::as_in_table)
        return horizontal_in(portable_kernels(), row, plane, table, packed, out);
    if (can_stream(out, table.outputs, 32))
        horizontal_any<true>(row, plane, table, packed, out);
    else
        horizontal_any<false>(row, plane, table, packed, out);
}

void finish() { _mm_sfence(); }

}   // namespace

extern const PixelKernels avx2_table;   // const alone would be of this file only
constinit const PixelKernels avx2_table =
    VectorKernels<Avx2>::with(deinterleave, interleave, pack, horizontal<FloatRows>, horizontal<LevelRows>, finish);

}   // namespace drawpoint

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
