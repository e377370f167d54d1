// Compiled for the baseline processor; only the functions marked AVX2 use it, and only after a check at run time.
#include "pipeline/image/own_jpeg/idct.hpp"

#if defined(DRAWPOINT_OWN_JPEG_AVX2)

#include <array>
#include <immintrin.h>

#define DRAWPOINT_AVX2 __attribute__((target("avx2")))
#define DRAWPOINT_AVX2_INLINE __attribute__((target("avx2"), always_inline)) inline

// A vector holds a row of the first block in its lower half and the same row of the second one in its upper half; no
// instruction here but the stores goes across.
namespace drawpoint::own_jpeg {
namespace {

DRAWPOINT_AVX2_INLINE __m256i two(std::int16_t even, std::int16_t odd) {
    return _mm256_set1_epi32(static_cast<int>(static_cast<std::uint16_t>(even) |
                                              static_cast<std::uint32_t>(static_cast<std::uint16_t>(odd)) << 16));
}

template <bool High>
DRAWPOINT_AVX2_INLINE __m256i interleave(__m256i a, __m256i b) {
    return High ? _mm256_unpackhi_epi16(a, b) : _mm256_unpacklo_epi16(a, b);
}

// One pass over the lower or upper four lanes: 8 rows of 32 bit. With Inputs = 4, in[4 … 7] are taken for 0.
template <int Inputs, bool High, int Shift>
DRAWPOINT_AVX2_INLINE void transform(const __m256i* in, __m256i* out) {
    const __m256i half = _mm256_set1_epi32(1 << (Shift - 1));
    const auto& e = even_coefficients;
    __m256i even[4];
    if constexpr (Inputs == 8) {
        const __m256i first = interleave<High>(in[0], in[4]), second = interleave<High>(in[2], in[6]);
        const __m256i sum = _mm256_add_epi32(_mm256_madd_epi16(first, two(8192, 8192)), half);
        const __m256i difference = _mm256_add_epi32(_mm256_madd_epi16(first, two(8192, -8192)), half);
        const __m256i e0 = _mm256_madd_epi16(second, two(e[0][0], e[0][1]));
        const __m256i e1 = _mm256_madd_epi16(second, two(e[1][0], e[1][1]));
        even[0] = _mm256_add_epi32(sum, e0);
        even[1] = _mm256_add_epi32(difference, e1);
        even[2] = _mm256_sub_epi32(difference, e1);
        even[3] = _mm256_sub_epi32(sum, e0);
    } else {
        const __m256i both = interleave<High>(in[0], in[2]);
        even[0] = _mm256_add_epi32(_mm256_madd_epi16(both, two(8192, e[0][0])), half);
        even[1] = _mm256_add_epi32(_mm256_madd_epi16(both, two(8192, e[1][0])), half);
        even[2] = _mm256_add_epi32(_mm256_madd_epi16(both, two(8192, static_cast<std::int16_t>(-e[1][0]))), half);
        even[3] = _mm256_add_epi32(_mm256_madd_epi16(both, two(8192, static_cast<std::int16_t>(-e[0][0]))), half);
    }
    const __m256i low = interleave<High>(in[1], in[3]);
    const __m256i high = Inputs == 8 ? interleave<High>(in[5], in[7]) : low;
    for (int i = 0; i < 4; ++i) {
        const auto& c = odd_coefficients[i];
        __m256i odd = _mm256_madd_epi16(low, two(c[0], c[1]));
        if constexpr (Inputs == 8)
            odd = _mm256_add_epi32(odd, _mm256_madd_epi16(high, two(c[2], c[3])));
        out[i] = _mm256_srai_epi32(_mm256_add_epi32(even[i], odd), Shift);
        out[7 - i] = _mm256_srai_epi32(_mm256_sub_epi32(even[i], odd), Shift);
    }
}

DRAWPOINT_AVX2_INLINE void transpose(__m256i* rows) {
    __m256i a[8], b[8];
    for (int i = 0; i < 4; ++i) {
        a[2 * i] = _mm256_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
        a[2 * i + 1] = _mm256_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
    }
    for (int i = 0; i < 2; ++i) {
        b[4 * i] = _mm256_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 1] = _mm256_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 2] = _mm256_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
        b[4 * i + 3] = _mm256_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
    }
    for (int i = 0; i < 4; ++i) {
        rows[2 * i] = _mm256_unpacklo_epi64(b[i], b[i + 4]);
        rows[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[i + 4]);
    }
}

// `columns[c]`: column c of the samples, before 128 is added. Returns the largest |sample|.
DRAWPOINT_AVX2_INLINE int store(const __m256i* columns, SampleRows first, SampleRows second) {
    __m256i largest = _mm256_abs_epi16(columns[0]);
    for (int i = 1; i < 8; ++i)
        largest = _mm256_max_epu16(largest, _mm256_abs_epi16(columns[i]));
    const __m256i p0 = _mm256_packs_epi16(columns[0], columns[2]), p1 = _mm256_packs_epi16(columns[1], columns[3]);
    const __m256i p2 = _mm256_packs_epi16(columns[4], columns[6]), p3 = _mm256_packs_epi16(columns[5], columns[7]);
    const __m256i c01 = _mm256_unpacklo_epi8(p0, p1), c23 = _mm256_unpackhi_epi8(p0, p1);
    const __m256i c45 = _mm256_unpacklo_epi8(p2, p3), c67 = _mm256_unpackhi_epi8(p2, p3);
    const __m256i left0 = _mm256_unpacklo_epi16(c01, c23), left4 = _mm256_unpackhi_epi16(c01, c23);
    const __m256i right0 = _mm256_unpacklo_epi16(c45, c67), right4 = _mm256_unpackhi_epi16(c45, c67);
    const __m256i bias = _mm256_set1_epi8(-128);
    const __m256i rows[4] = {_mm256_add_epi8(_mm256_unpacklo_epi32(left0, right0), bias),
                             _mm256_add_epi8(_mm256_unpackhi_epi32(left0, right0), bias),
                             _mm256_add_epi8(_mm256_unpacklo_epi32(left4, right4), bias),
                             _mm256_add_epi8(_mm256_unpackhi_epi32(left4, right4), bias)};
    for (std::size_t i = 0; i < 4; ++i) {
        const __m128i a = _mm256_castsi256_si128(rows[i]), b = _mm256_extracti128_si256(rows[i], 1);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(first.first + 2 * i * first.stride), a);
        _mm_storeh_pd(reinterpret_cast<double*>(first.first + (2 * i + 1) * first.stride), _mm_castsi128_pd(a));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(second.first + 2 * i * second.stride), b);
        _mm_storeh_pd(reinterpret_cast<double*>(second.first + (2 * i + 1) * second.stride), _mm_castsi128_pd(b));
    }
    // The least of 65535 - x is the greatest x.
    const __m128i greatest = _mm_max_epu16(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
    const __m128i least = _mm_minpos_epu16(_mm_xor_si128(greatest, _mm_set1_epi16(-1)));
    return 65535 - (_mm_cvtsi128_si32(least) & 65535);
}

DRAWPOINT_AVX2_INLINE __m256i* row(CoefficientPair& coefficients, int r) {
    return reinterpret_cast<__m256i*>(coefficients.values + r * 16);
}

DRAWPOINT_AVX2_INLINE __m256i dequantized(CoefficientPair& coefficients, const QuantizationPair& quantization, int r) {
    const __m256i factors = _mm256_load_si256(reinterpret_cast<const __m256i*>(quantization.values + r * 16));
    const __m256i values = _mm256_mullo_epi16(_mm256_load_si256(row(coefficients, r)), factors);
    _mm256_store_si256(row(coefficients, r), _mm256_setzero_si256());
    return values;
}

// Any coefficients.
DRAWPOINT_AVX2 int full(CoefficientPair& coefficients, const QuantizationPair& quantization, SampleRows first,
                        SampleRows second) {
    __m256i values[8], low[8], high[8];
    for (int r = 0; r < 8; ++r)
        values[r] = dequantized(coefficients, quantization, r);
    transform<8, false, first_shift>(values, low);
    transform<8, true, first_shift>(values, high);
    for (int r = 0; r < 8; ++r)
        values[r] = _mm256_packs_epi32(low[r], high[r]);
    transpose(values);
    transform<8, false, second_shift>(values, low);
    transform<8, true, second_shift>(values, high);
    for (int r = 0; r < 8; ++r)
        values[r] = _mm256_packs_epi32(low[r], high[r]);
    return store(values, first, second);
}

// Coefficients in the first four rows and columns only.
DRAWPOINT_AVX2 int quarter(CoefficientPair& coefficients, const QuantizationPair& quantization, SampleRows first,
                           SampleRows second) {
    __m256i values[8], low[8], high[8];
    for (int r = 0; r < 4; ++r)
        values[r] = dequantized(coefficients, quantization, r);
    transform<4, false, first_shift>(values, low);
    __m256i p[4];   // row r left, row r + 4 right
    for (int r = 0; r < 4; ++r)
        p[r] = _mm256_packs_epi32(low[r], low[r + 4]);
    const __m256i top01 = _mm256_unpacklo_epi16(p[0], p[1]), bottom01 = _mm256_unpackhi_epi16(p[0], p[1]);
    const __m256i top23 = _mm256_unpacklo_epi16(p[2], p[3]), bottom23 = _mm256_unpackhi_epi16(p[2], p[3]);
    const __m256i top_left = _mm256_unpacklo_epi32(top01, top23), top_right = _mm256_unpackhi_epi32(top01, top23);
    const __m256i low_left = _mm256_unpacklo_epi32(bottom01, bottom23);
    const __m256i low_right = _mm256_unpackhi_epi32(bottom01, bottom23);
    const __m256i columns[4] = {_mm256_unpacklo_epi64(top_left, low_left), _mm256_unpackhi_epi64(top_left, low_left),
                                _mm256_unpacklo_epi64(top_right, low_right),
                                _mm256_unpackhi_epi64(top_right, low_right)};
    transform<4, false, second_shift>(columns, low);
    transform<4, true, second_shift>(columns, high);
    for (int r = 0; r < 8; ++r)
        values[r] = _mm256_packs_epi32(low[r], high[r]);
    return store(values, first, second);
}

// Nothing but the mean.
DRAWPOINT_AVX2 int flat(CoefficientPair& coefficients, const QuantizationPair& quantization, SampleRows first,
                        SampleRows second) {
    int largest = 0;
    const std::array<SampleRows, 2> targets = {first, second};
    for (std::size_t b = 0; b < 2; ++b) {
        std::int16_t& value = coefficients.values[8 * b];
        const int sample = (value * quantization.values[8 * b] + 4) >> 3;
        value = 0;
        largest = sample > largest ? sample : -sample > largest ? -sample : largest;
        const int clipped = sample < -128 ? 0 : sample > 127 ? 255 : sample + 128;
        const __m128i all = _mm_set1_epi8(static_cast<char>(clipped));
        for (std::size_t r = 0; r < 8; ++r)
            _mm_storel_epi64(reinterpret_cast<__m128i*>(targets[b].first + r * targets[b].stride), all);
    }
    return largest;
}

}   // namespace

DRAWPOINT_AVX2 int Avx2Idct::pair(CoefficientPair& coefficients, const QuantizationPair& quantization, int highest,
                                  SampleRows first, SampleRows second) noexcept {
    if (highest == 0)
        return flat(coefficients, quantization, first, second);
    if (highest <= 9)   // in zigzag order, none of these is beyond the fourth row or column
        return quarter(coefficients, quantization, first, second);
    return full(coefficients, quantization, first, second);
}

}   // namespace drawpoint::own_jpeg

#endif
