#pragma once
#include "pipeline/image/filter_table.hpp"
#include "pipeline/image/pixels/scratch_buffer.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// One value per channel: output = pixel * scale + bias.
struct AffineNormalization {
    std::array<float, 3> scale, bias;
};

/// A row of each of three planes of normalised values, `plane` floats apart.
struct FloatRows {
    float* red;
    std::size_t plane;
    const AffineNormalization& normalization;
};

/// A row of each of three planes of levels, `plane` bytes apart.
struct LevelRows {
    std::uint8_t* red;
    std::size_t plane;
};

/// Subtracted from chroma sums and from widened chroma before they are stored. It centres them on 0; in the sums it
/// also carries the rounding of even pixels.
inline constexpr std::int16_t sum_centre = 4 * 128 - 2, widened_centre = 128;

/// Bytes that must be readable beyond the last row handed to a kernel, since the kernels load whole vectors.
inline constexpr std::size_t row_padding = 128;

/// A horizontal FilterTable in the order in which a kernel loads it.
struct PackedWeights {
    enum class Layout : std::uint8_t { as_in_table, near, far, along_taps };
    Layout layout = Layout::as_in_table;

    /// A buffer of at least `count` bytes, aligned to 64; the previous one if it is large enough. Not inline: code
    /// compiled for one instruction set must not be linked into the whole program.
    std::byte* bytes(std::size_t count);

    /// Makes room for every layout of tables of up to `taps` taps.
    void reserve(std::uint32_t outputs, std::uint32_t taps);

private:
    ScratchBuffer<std::byte, 262144> memory_;
};

/// The inner loops over pixels for one instruction set. Every set gives the same bytes. Planar rows are R, G and B side
/// by side, `plane` bytes apart.
struct PixelKernels {
    /// sums[i] = 3 * near[i] + far[i] - sum_centre for i < count. Reads and writes up to 31 elements more.
    void (*chroma_sums)(const std::uint8_t* near, const std::uint8_t* far, std::size_t count, std::int16_t* sums);
    /// widened[i] = samples[i] - widened_centre for i < count. Reads and writes up to 31 elements more.
    void (*widen)(const std::uint8_t* samples, std::size_t count, std::int16_t* widened);
    /// Writes 2 * pairs RGB pixels from luma and from chroma sums at half its columns, with libjpeg's fancy upsampling
    /// and colour conversion. Elements -1 and `pairs` of the sums are read too. Reads and writes up to 63 pixels more.
    void (*rgb_420)(const std::uint8_t* luma, const std::int16_t* blue, const std::int16_t* red, std::size_t pairs,
                    std::uint8_t* rgb, std::size_t plane);
    /// As rgb_420, from widened chroma at half the columns of every row.
    void (*rgb_422)(const std::uint8_t* luma, const std::int16_t* blue, const std::int16_t* red, std::size_t pairs,
                    std::uint8_t* rgb, std::size_t plane);
    /// As rgb_420, from chroma of every pixel.
    void (*rgb_444)(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, std::size_t pairs,
                    std::uint8_t* rgb, std::size_t plane);
    /// Interleaved to planar; reads and writes up to 31 pixels more.
    void (*deinterleave)(const std::uint8_t* interleaved, std::size_t pixels, std::uint8_t* rgb, std::size_t plane);
    /// Planar to interleaved; reads up to 63 pixels more and writes nothing beyond.
    void (*interleave)(const std::uint8_t* rgb, std::size_t plane, std::size_t pixels, std::uint8_t* interleaved);

    /// out[i] = (rounding + sum over t of weights[t] * rows[t * stride + i] / 256, each rounded down) / 256 for i <
    /// bytes; writes nothing beyond. The weights have FilterTable::vertical_bits.
    void (*vertical)(const std::uint8_t* rows, std::size_t stride, const std::uint16_t* weights, std::uint32_t taps,
                     std::uint16_t rounding, std::size_t bytes, std::uint8_t* out);
    /// Puts the table's weights, of FilterTable::horizontal_bits, into `packed` for horizontal(); called once per
    /// image.
    void (*pack)(const FilterTable& table, PackedWeights& packed);
    /// Resamples one planar row of bytes to one row of each plane of `out`.
    void (*horizontal)(const std::uint8_t* row, std::size_t plane, const FilterTable& table, PackedWeights& packed,
                       const FloatRows& out);
    void (*horizontal_levels)(const std::uint8_t* row, std::size_t plane, const FilterTable& table,
                              PackedWeights& packed, const LevelRows& out);
    /// Orders the stores with which horizontal() bypassed the cache before later ones; called once per image.
    void (*finish)();
};

/// Plain C++, on every machine.
const PixelKernels& portable_kernels() noexcept;

/// Null where the processor or the compiler lacks it.
const PixelKernels* avx2_kernels() noexcept;

/// AVX-512 with VBMI and VNNI; null where the processor or the compiler lacks it.
const PixelKernels* avx512_kernels() noexcept;

/// The fastest of those.
const PixelKernels& best_kernels() noexcept;

/// As PixelKernels::vertical for a wide table's weights.
void vertical_wide(const std::uint8_t* rows, std::size_t stride, const std::int32_t* weights, std::uint32_t taps,
                   std::size_t bytes, std::int32_t* sums, std::uint8_t* out);

/// As PixelKernels::horizontal for a wide table.
void horizontal_wide(const std::uint8_t* row, std::size_t plane, const FilterTable& table, const FloatRows& out);
void horizontal_wide(const std::uint8_t* row, std::size_t plane, const FilterTable& table, const LevelRows& out);

}   // namespace drawpoint
