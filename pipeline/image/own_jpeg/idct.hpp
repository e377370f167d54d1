#pragma once
// The inverse DCT of libjpeg's jidctint.c ("islow") as sums of products: each pass is an exact integer matrix and one
// rounded shift, so any way to sum gives the same samples.
#include "pipeline/image/own_jpeg/block_reader.hpp"

#include <cstddef>
#include <cstdint>

namespace drawpoint::own_jpeg {

/// The dequantisation of a CoefficientPair, laid out like it.
struct alignas(64) QuantizationPair {
    std::int16_t values[128];
};

/// Where a block's 8 rows of 8 samples go.
struct SampleRows {
    std::uint8_t* first = nullptr;
    std::size_t stride = 0;
};

/// The largest |sample|, before 128 is added and it is clipped, that a block may have. Up to it all versions of
/// libjpeg-turbo agree. Its vector versions wrap at a coefficient or intermediate sum of 16384, which implies a row
/// with a root mean square of at least 512, since the transform preserves energy. Photographs stay far below.
inline constexpr int max_sample = 500;

// The matrix, times 2^13.
inline constexpr std::int16_t even_coefficients[2][2] = {{10703, 4433},
                                                         {4433, -10704}};   // inputs 2, 6 of outputs 0, 1
inline constexpr std::int16_t odd_coefficients[4][4] = {                    // inputs 1, 3, 5, 7 of outputs 0 … 3
    {11363, 9633, 6437, 2260},
    {9633, -2259, -11362, -6436},
    {6437, -11362, 2261, 9633},
    {2260, -6436, 9633, -11363}};
inline constexpr int first_shift = 11, second_shift = 18;

/// Plain C++.
struct PortableIdct {
    /// Turns a pair into samples and zeroes it. `highest`: the larger result of read_block() for the two. Returns the
    /// largest |sample| before clipping, exact where it is above max_sample.
    static int pair(CoefficientPair& coefficients, const QuantizationPair& quantization, int highest, SampleRows first,
                    SampleRows second) noexcept;
};

#if defined(__x86_64__) && defined(__GNUC__)
#define DRAWPOINT_OWN_JPEG_AVX2 1
/// AVX2: the pair in one vector.
struct Avx2Idct {
    static int pair(CoefficientPair& coefficients, const QuantizationPair& quantization, int highest, SampleRows first,
                    SampleRows second) noexcept;
};
#endif

}   // namespace drawpoint::own_jpeg
