#pragma once
#include "drawpoint/pipeline/image/resize.hpp"
#include "pipeline/image/filter_table.hpp"
#include "pipeline/image/scratch_buffer.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// One value per channel: output = pixel * scale + bias.
struct AffineNormalization {
    std::array<float, 3> scale, bias;
};

/// Bytes a row buffer must have beyond its pixels, since the kernels load whole vectors.
inline constexpr std::size_t row_padding = 64;

/// The weights of a horizontal FilterTable in the order a kernel loads them.
using PackedWeights = ScratchBuffer<std::int16_t, 262144>;

/// The two passes for tables that are not wide. Every set gives the same bytes.
struct ResampleKernels {
    /// out[i] = round(sum over t of weights[t] * rows[t * stride + i]), i < bytes. Weights are zero up to a multiple of 4.
    void (*vertical)(const std::uint8_t* rows, std::size_t stride, const std::int16_t* weights, std::uint32_t taps,
                     std::size_t bytes, std::uint8_t* out);
    /// Puts the table's weights into `packed` for horizontal(); called once per image.
    void (*pack)(const FilterTable& table, PackedWeights& packed);
    /// One interleaved RGB row, padded by row_padding readable bytes, to one row of each plane, `plane`
    /// floats apart.
    void (*horizontal)(const std::uint8_t* row, const FilterTable& table, PackedWeights& packed,
                       const AffineNormalization& normalization, float* red, std::size_t plane);
};

/// Plain C++, on every machine.
const ResampleKernels& portable_kernels() noexcept;

/// AVX2; null where the processor or the compiler lacks it.
const ResampleKernels* avx2_kernels() noexcept;

/// As ResampleKernels::vertical for a wide table's weights.
void vertical_wide(const std::uint8_t* rows, std::size_t stride, const std::int32_t* weights, std::uint32_t taps,
                   std::size_t bytes, std::int32_t* sums, std::uint8_t* out);

/// As ResampleKernels::horizontal for a wide table.
void horizontal_wide(const std::uint8_t* row, const FilterTable& table, const AffineNormalization& normalization,
                     float* red, std::size_t plane);

/// What a ResizeScratch holds.
struct ResizeBuffers {
    const ResampleKernels* kernels = avx2_kernels() ? avx2_kernels() : &portable_kernels();
    FilterTable vertical, horizontal;
    PackedWeights packed;
    ScratchBuffer<std::uint8_t, 65536> row;
    ScratchBuffer<std::int32_t, 65536> sums;
};

}   // namespace drawpoint
