// Compiled for the baseline processor; only the functions marked AVX2 use it, and only after a check at run time.
#include "pipeline/image/resample.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cstring>
#include <immintrin.h>

#define DRAWPOINT_AVX2 __attribute__((target("avx2")))

namespace drawpoint {
namespace {

constexpr std::int32_t half = 1 << (FilterTable::narrow_bits - 1);
constexpr std::uint32_t group = 8;   // outputs a horizontal step makes

DRAWPOINT_AVX2 inline __m256i load(const std::uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// 32 bytes of one output row. Two input rows at a time become pairs of 16 bit, so that one multiply-add takes both.
// Pairs: 0 = as many as `taps` says.
template <std::uint32_t Pairs>
DRAWPOINT_AVX2 inline void vertical_block(const std::uint8_t* rows, std::size_t stride, const std::int16_t* weights,
                                          std::uint32_t taps, std::uint8_t* out) {
    const __m256i zero = _mm256_setzero_si256();
    __m256i sum0 = _mm256_set1_epi32(half), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (std::uint32_t tap = 0; tap < (Pairs != 0 ? 2 * Pairs : taps); tap += 2) {
        std::int32_t pair;
        std::memcpy(&pair, weights + tap, sizeof pair);
        const __m256i weight = _mm256_set1_epi32(pair);
        const __m256i near = load(rows + tap * stride);
        const __m256i far = tap + 1 < taps ? load(rows + (tap + 1) * stride) : near;   // weight 0 beyond the last row
        const __m256i low = _mm256_unpacklo_epi8(near, far), high = _mm256_unpackhi_epi8(near, far);
        sum0 = _mm256_add_epi32(sum0, _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), weight));
        sum1 = _mm256_add_epi32(sum1, _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), weight));
        sum2 = _mm256_add_epi32(sum2, _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), weight));
        sum3 = _mm256_add_epi32(sum3, _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), weight));
    }
    sum0 = _mm256_packs_epi32(_mm256_srai_epi32(sum0, FilterTable::narrow_bits),
                              _mm256_srai_epi32(sum1, FilterTable::narrow_bits));
    sum2 = _mm256_packs_epi32(_mm256_srai_epi32(sum2, FilterTable::narrow_bits),
                              _mm256_srai_epi32(sum3, FilterTable::narrow_bits));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_packus_epi16(sum0, sum2));
}

template <std::uint32_t Pairs>
DRAWPOINT_AVX2 void vertical_row(const std::uint8_t* rows, std::size_t stride, const std::int16_t* weights,
                                 std::uint32_t taps, std::size_t bytes, std::uint8_t* out) {
    for (std::size_t i = 0; i + 32 <= bytes; i += 32)
        vertical_block<Pairs>(rows + i, stride, weights, taps, out + i);
    if (bytes % 32 != 0)
        vertical_block<Pairs>(rows + bytes - 32, stride, weights, taps, out + bytes - 32);
}

void vertical(const std::uint8_t* rows, std::size_t stride, const std::int16_t* weights, std::uint32_t taps,
              std::size_t bytes, std::uint8_t* out) {
    if (bytes < 32)
        return portable_kernels().vertical(rows, stride, weights, taps, bytes, out);
    const std::uint32_t pairs = (taps + 1) / 2;
    const auto kernel = pairs == 1   ? vertical_row<1>
                        : pairs == 2 ? vertical_row<2>
                        : pairs == 3 ? vertical_row<3>
                        : pairs == 4 ? vertical_row<4>
                                     : vertical_row<0>;
    kernel(rows, stride, weights, taps, bytes, out);
}

// The first output of step `index`: the last step overlaps its neighbour where the width is not a multiple of 8.
std::uint32_t step_begin(std::uint32_t index, std::uint32_t outputs) {
    return index * group + group <= outputs ? index * group : outputs - group;
}

// For outputs o+k and o+4+k, and each two taps: the pair of weights four times for o+k, four times for o+4+k.
void pack(const FilterTable& table, PackedWeights& packed) {
    if (table.outputs < group)
        return;
    const std::uint32_t steps = (table.outputs + group - 1) / group;
    std::int16_t* to = packed.get(std::size_t{steps} * group * table.stride * 4);
    for (std::uint32_t step = 0; step < steps; ++step) {
        const std::int16_t* from = table.narrow + std::size_t{step_begin(step, table.outputs)} * table.stride;
        for (std::uint32_t k = 0; k < 4; ++k)
            for (std::uint32_t tap = 0; tap < table.stride; tap += 2)
                for (const std::uint32_t output : {k, k + 4}) {
                    std::int32_t pair;
                    std::memcpy(&pair, from + std::size_t{output} * table.stride + tap, sizeof pair);
                    _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm_set1_epi32(pair));
                    to += 8;
                }
    }
}

// Output pixels whose taps begin at `first` and at `second`, as R G B 0 | R G B 0. Taps: 0 = as the stride says.
template <std::uint32_t Taps>
DRAWPOINT_AVX2 inline __m256i two_pixels(const std::uint8_t* first, const std::uint8_t* second, const __m256i* weights,
                                         std::uint32_t stride) {
    // Bytes R0 . R1 . G0 . G1 . B0 . B1 . of pixels 0 and 1, then of 2 and 3; a dot is zero.
    const __m256i pixels01 =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
    const __m256i pixels23 =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
    __m256i sum = _mm256_set1_epi32(half);
    for (std::uint32_t tap = 0; tap < (Taps != 0 ? Taps : stride); tap += 4, weights += 2) {
        const __m256i pixels = _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(first + 3 * tap))),
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(second + 3 * tap)), 1);
        sum =
            _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, pixels01), _mm256_load_si256(weights)));
        sum = _mm256_add_epi32(
            sum, _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, pixels23), _mm256_load_si256(weights + 1)));
    }
    return _mm256_srai_epi32(sum, FilterTable::narrow_bits);
}

DRAWPOINT_AVX2 inline void store_channel(__m128i bytes, __m256 scale, __m256 bias, float* to) {
    const __m256 values = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    _mm256_storeu_ps(to, _mm256_add_ps(_mm256_mul_ps(values, scale), bias));
}

template <std::uint32_t Taps>
DRAWPOINT_AVX2 void horizontal_row(const std::uint8_t* row, const FilterTable& table, const std::int16_t* packed,
                                   const AffineNormalization& normalization, float* red, std::size_t plane) {
    const __m256i by_channel =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m256i join_halves = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256 scale0 = _mm256_set1_ps(normalization.scale[0]), bias0 = _mm256_set1_ps(normalization.bias[0]);
    const __m256 scale1 = _mm256_set1_ps(normalization.scale[1]), bias1 = _mm256_set1_ps(normalization.bias[1]);
    const __m256 scale2 = _mm256_set1_ps(normalization.scale[2]), bias2 = _mm256_set1_ps(normalization.bias[2]);
    const std::uint32_t steps = (table.outputs + group - 1) / group;
    const std::size_t pair_vectors = table.stride / 2;
    const auto* weights = reinterpret_cast<const __m256i*>(packed);
    const std::uint32_t stride = table.stride;
    for (std::uint32_t step = 0; step < steps; ++step) {
        const std::uint32_t o = step_begin(step, table.outputs);
        const std::uint32_t* first = table.first + o;
        const __m256i sum0 = two_pixels<Taps>(row + first[0] * 3UL, row + first[4] * 3UL, weights, stride);
        const __m256i sum1 =
            two_pixels<Taps>(row + first[1] * 3UL, row + first[5] * 3UL, weights + pair_vectors, stride);
        const __m256i sum2 =
            two_pixels<Taps>(row + first[2] * 3UL, row + first[6] * 3UL, weights + 2 * pair_vectors, stride);
        const __m256i sum3 =
            two_pixels<Taps>(row + first[3] * 3UL, row + first[7] * 3UL, weights + 3 * pair_vectors, stride);
        weights += 4 * pair_vectors;
        const __m256i pixels = _mm256_packus_epi16(_mm256_packs_epi32(sum0, sum1), _mm256_packs_epi32(sum2, sum3));
        const __m256i planes = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(pixels, by_channel), join_halves);
        const __m128i red_green = _mm256_castsi256_si128(planes);
        const __m128i blue = _mm256_extracti128_si256(planes, 1);
        float* to = red + o;
        store_channel(red_green, scale0, bias0, to);
        store_channel(_mm_srli_si128(red_green, 8), scale1, bias1, to + plane);
        store_channel(blue, scale2, bias2, to + 2 * plane);
    }
}

void horizontal(const std::uint8_t* row, const FilterTable& table, PackedWeights& packed,
                const AffineNormalization& normalization, float* red, std::size_t plane) {
    if (table.outputs < group)
        return portable_kernels().horizontal(row, table, packed, normalization, red, plane);
    const auto kernel = table.stride == 4   ? horizontal_row<4>
                        : table.stride == 8 ? horizontal_row<8>
                                            : horizontal_row<0>;
    kernel(row, table, packed.get(0), normalization, red, plane);
}

}   // namespace

const ResampleKernels* avx2_kernels() noexcept {
    static constexpr ResampleKernels kernels{vertical, pack, horizontal};
    return __builtin_cpu_supports("avx2") ? &kernels : nullptr;
}

}   // namespace drawpoint

#else

namespace drawpoint {

const ResampleKernels* avx2_kernels() noexcept { return nullptr; }

}   // namespace drawpoint

#endif
