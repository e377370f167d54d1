#include "pipeline/image/pixel_kernels.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cstring>

#include <immintrin.h>

// As in pixel_kernels_avx2.cpp.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni"))),          \
                             apply_to = function)
#else
#pragma GCC target("avx2,avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")
#endif

#include "pipeline/image/pixel_kernels_vector.hpp"

namespace drawpoint {

extern const PixelKernels avx2_table;

namespace {

using Layout = PackedWeights::Layout;

constexpr std::uint32_t group = 16;   // outputs of a horizontal step
constexpr std::int32_t half = 1 << (FilterTable::horizontal_bits - 1);
constexpr __mmask64 even_bytes = 0x5555555555555555;

struct Avx512 {
    typedef std::int16_t Words __attribute__((vector_size(64)));
    typedef std::uint16_t Unsigned __attribute__((vector_size(64)));

    static inline Words widen(const std::uint8_t* from) {
        return reinterpret_cast<Words>(
            _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
    }
    static inline Words rounded(Words a, std::int16_t b) {
        return reinterpret_cast<Words>(_mm512_mulhrs_epi16(reinterpret_cast<__m512i>(a), _mm512_set1_epi16(b)));
    }
    static inline Unsigned high_unsigned(Unsigned a, std::uint16_t b) {
        return reinterpret_cast<Unsigned>(
            _mm512_mulhi_epu16(reinterpret_cast<__m512i>(a), _mm512_set1_epi16(static_cast<std::int16_t>(b))));
    }
    static inline Words green(Words blue, Words red) {
        const auto cb = reinterpret_cast<__m512i>(blue), cr = reinterpret_cast<__m512i>(red);
        const __m512i weights = _mm512_set1_epi32(static_cast<std::int32_t>((-23401u << 16) | (0xFFFFu & -11277u)));
        const __m512i rounding = _mm512_set1_epi32(32768);
        const __m512i low = _mm512_dpwssd_epi32(rounding, _mm512_unpacklo_epi16(cb, cr), weights);
        const __m512i high = _mm512_dpwssd_epi32(rounding, _mm512_unpackhi_epi16(cb, cr), weights);
        return reinterpret_cast<Words>(_mm512_packs_epi32(_mm512_srai_epi32(low, 16), _mm512_srai_epi32(high, 16)));
    }
    static inline void store_pairs(std::uint8_t* to, Words even, Words odd) {
        const __m512i in_pairs =
            _mm512_broadcast_i32x4(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
        const __m512i bytes = _mm512_packus_epi16(reinterpret_cast<__m512i>(even), reinterpret_cast<__m512i>(odd));
        _mm512_storeu_si512(to, _mm512_shuffle_epi8(bytes, in_pairs));
    }
};

// The first output of step `index`: the last step overlaps its neighbour where the width is not a multiple of 16.
inline std::uint32_t step_begin(std::uint32_t index, std::uint32_t outputs) {
    return index * group + group <= outputs ? index * group : outputs - group;
}

inline std::uint32_t steps_of(const FilterTable& table) { return (table.outputs + group - 1) / group; }

// Per step where its taps begin and 64 places, then per pair of taps 16 pairs of weights.
struct Step {
    std::uint32_t base, unused[15];
    std::uint8_t places[64];
};

std::size_t step_bytes(const FilterTable& table) { return sizeof(Step) + (table.taps + 1) / 2 * 64; }

void pack(const FilterTable& table, PackedWeights& packed) {
    packed.layout = Layout::as_in_table;
    if (table.outputs < group)
        return;
    const std::uint32_t pairs = (table.taps + 1) / 2;
    std::uint32_t span = 0;
    for (std::uint32_t step = 0; step < steps_of(table); ++step) {
        const std::uint32_t* first = table.first + step_begin(step, table.outputs);
        const std::uint32_t begin = first[0], end = first[group - 1];   // monotonic, falling if flipped
        const std::uint32_t bytes = (begin < end ? end - begin : begin - end) + 2 * pairs;
        span = bytes > span ? bytes : span;
    }
    if (span > 128)   // there are many taps, so the vectors may as well run along them
        return avx2_table.pack(table, packed);
    packed.layout = span <= 64 ? Layout::near : Layout::far;
    std::byte* to = packed.bytes(steps_of(table) * step_bytes(table));
    for (std::uint32_t step = 0; step < steps_of(table); ++step) {
        const std::uint32_t begin = step_begin(step, table.outputs);
        const std::uint32_t* first = table.first + begin;
        Step head{};
        head.base = first[0] < first[group - 1] ? first[0] : first[group - 1];
        for (std::uint32_t i = 0; i < group; ++i) {
            head.places[4 * i] = static_cast<std::uint8_t>(first[i] - head.base);
            head.places[4 * i + 2] = static_cast<std::uint8_t>(first[i] - head.base + 1);
        }
        std::memcpy(to, &head, sizeof head);
        to += sizeof head;
        for (std::uint32_t pair = 0; pair < pairs; ++pair)
            for (std::uint32_t i = 0; i < group; ++i, to += 4)
                std::memcpy(to, table.narrow + std::size_t{begin + i} * table.stride + 2 * pair, 4);
    }
}

/// How the sums of a step become values of a channel.
template <bool Stream>
class FloatStore {
public:
    explicit FloatStore(const FloatRows& out) : red_{out.red}, plane_{out.plane} {
        for (std::size_t c = 0; c < 3; ++c) {
            scale_[c] = _mm512_set1_ps(out.normalization.scale[c]);
            bias_[c] = _mm512_set1_ps(out.normalization.bias[c]);
        }
    }
    void operator()(std::size_t c, std::uint32_t at, __m512i sums) const {
        const __m512 levels = _mm512_cvtepi32_ps(_mm512_srai_epi32(sums, FilterTable::horizontal_bits));
        const __m512 values = _mm512_add_ps(_mm512_mul_ps(levels, scale_[c]), bias_[c]);
        float* const to = red_ + c * plane_ + at;
        if constexpr (Stream)
            _mm512_stream_ps(to, values);
        else
            _mm512_storeu_ps(to, values);
    }

private:
    float* red_;
    std::size_t plane_;
    __m512 scale_[3], bias_[3];
};

class LevelStore {
public:
    explicit LevelStore(const LevelRows& out) : out_{out} {}
    void operator()(std::size_t c, std::uint32_t at, __m512i sums) const {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out_.red + c * out_.plane + at),
                         _mm512_cvtepi32_epi8(_mm512_srai_epi32(sums, FilterTable::horizontal_bits)));
    }

private:
    LevelRows out_;
};

template <bool Stream>
inline FloatStore<Stream> store_of(const FloatRows& out) {
    return FloatStore<Stream>{out};
}
template <bool>
inline LevelStore store_of(const LevelRows& out) {
    return LevelStore{out};
}

template <bool Far, std::uint32_t Pairs, bool Stream, class Rows>
void horizontal_row(const std::uint8_t* row, std::size_t plane, const FilterTable& table, const std::byte* packed,
                    const Rows& out) {
    const std::uint32_t pairs = Pairs != 0 ? Pairs : (table.taps + 1) / 2;
    const __m512i next = _mm512_set1_epi32(0x00020002);
    const std::size_t bytes_of_step = step_bytes(table);
    const auto store = store_of<Stream>(out);
    for (std::uint32_t step = 0; step < steps_of(table); ++step, packed += bytes_of_step) {
        const auto& head = *reinterpret_cast<const Step*>(packed);
        const std::byte* weights = packed + sizeof head;
        const std::uint32_t begin = step_begin(step, table.outputs);
        const std::uint8_t* from = row + head.base;
        __m512i places = _mm512_load_si512(head.places), bytes[3], beyond[3], sums[3];
        for (std::size_t c = 0; c < 3; ++c, from += plane) {
            bytes[c] = _mm512_loadu_si512(from);
            beyond[c] = Far ? _mm512_loadu_si512(from + 64) : bytes[c];
            sums[c] = _mm512_set1_epi32(half);
        }
        for (std::uint32_t pair = 0; pair < pairs; ++pair) {
            const __m512i weight = _mm512_load_si512(weights + std::size_t{pair} * 64);
            for (std::size_t c = 0; c < 3; ++c) {
                __m512i taps;
                if constexpr (Far)
                    taps = _mm512_maskz_permutex2var_epi8(even_bytes, bytes[c], places, beyond[c]);
                else
                    taps = _mm512_maskz_permutexvar_epi8(even_bytes, places, bytes[c]);
                sums[c] = _mm512_dpwssd_epi32(sums[c], taps, weight);
            }
            places = _mm512_add_epi8(places, next);
        }
        for (std::size_t c = 0; c < 3; ++c)
            store(c, begin, sums[c]);
    }
}

template <bool Stream, class Rows>
void horizontal_any(const std::uint8_t* row, std::size_t plane, const FilterTable& table, PackedWeights& packed,
                    const Rows& out) {
    const auto kernel = packed.layout == Layout::far ? horizontal_row<true, 0, Stream, Rows>
                        : table.taps <= 2            ? horizontal_row<false, 1, Stream, Rows>
                        : table.taps <= 4            ? horizontal_row<false, 2, Stream, Rows>
                        : table.taps <= 6            ? horizontal_row<false, 3, Stream, Rows>
                        : table.taps <= 8            ? horizontal_row<false, 4, Stream, Rows>
                                                     : horizontal_row<false, 0, Stream, Rows>;
    kernel(row, plane, table, packed.bytes(0), out);
}

template <class Rows>
void horizontal(const std::uint8_t* row, std::size_t plane, const FilterTable& table, PackedWeights& packed,
                const Rows& out) {
    if (packed.layout != Layout::near && packed.layout != Layout::far)
        return horizontal_in(avx2_table, row, plane, table, packed, out);
    if (can_stream(out, table.outputs, 64))
        horizontal_any<true>(row, plane, table, packed, out);
    else
        horizontal_any<false>(row, plane, table, packed, out);
}

void deinterleave(const std::uint8_t* interleaved, std::size_t pixels, std::uint8_t* rgb, std::size_t plane) {
    avx2_table.deinterleave(interleaved, pixels, rgb, plane);
}

void interleave(const std::uint8_t* rgb, std::size_t plane, std::size_t pixels, std::uint8_t* to) {
    // For each of 64 bytes in three stores: its pixel, as places of red and green side by side, and where blue goes.
    alignas(64) std::uint8_t places[3][64];
    std::uint64_t blue_bytes[3] = {};
    for (std::uint32_t byte = 0; byte < 192; ++byte) {
        places[byte / 64][byte % 64] = static_cast<std::uint8_t>(byte / 3 + (byte % 3 == 1 ? 64 : 0));
        if (byte % 3 == 2)
            blue_bytes[byte / 64] |= std::uint64_t{1} << byte % 64;
    }
    for (std::size_t i = 0; i < pixels; i += 64) {
        const __m512i red = _mm512_loadu_si512(rgb + i), green = _mm512_loadu_si512(rgb + plane + i),
                      blue = _mm512_loadu_si512(rgb + 2 * plane + i);
        std::size_t bytes = (pixels - i < 64 ? pixels - i : 64) * 3;
        for (std::size_t part = 0; part < 3 && bytes != 0; ++part, to += 64) {
            const __m512i from = _mm512_load_si512(places[part]);
            const __m512i all =
                _mm512_mask_permutexvar_epi8(_mm512_permutex2var_epi8(red, from, green), blue_bytes[part], from, blue);
            const std::size_t here = bytes < 64 ? bytes : 64;
            _mm512_mask_storeu_epi8(to, ~std::uint64_t{0} >> (64 - here), all);
            bytes -= here;
        }
    }
}

void finish() { _mm_sfence(); }

}   // namespace

extern const PixelKernels avx512_table;   // const alone would be of this file only
constinit const PixelKernels avx512_table =
    VectorKernels<Avx512>::with(deinterleave, interleave, pack, horizontal<FloatRows>, horizontal<LevelRows>, finish);

}   // namespace drawpoint

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
