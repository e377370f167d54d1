#include "pipeline/image/resample.hpp"

#include <algorithm>

namespace drawpoint {
namespace {

constexpr std::int32_t half = 1 << (FilterTable::narrow_bits - 1);
constexpr std::int32_t wide_half = 1 << (FilterTable::wide_bits - 1);

void vertical(const std::uint8_t* rows, std::size_t stride, const std::int16_t* weights, std::uint32_t taps,
              std::size_t bytes, std::uint8_t* out) {
    constexpr std::size_t block = 64;   // sums stay in registers
    for (std::size_t begin = 0; begin < bytes; begin += block) {
        const std::size_t count = std::min(block, bytes - begin);
        std::int32_t sums[block];
        std::fill_n(sums, block, half);
        for (std::uint32_t tap = 0; tap < taps; ++tap) {
            const std::uint8_t* source = rows + tap * stride + begin;
            for (std::size_t i = 0; i < count; ++i)
                sums[i] += weights[tap] * source[i];
        }
        for (std::size_t i = 0; i < count; ++i)
            out[begin + i] = static_cast<std::uint8_t>(sums[i] >> FilterTable::narrow_bits);
    }
}

template <int Bits, class Weight>
void horizontal_row(const std::uint8_t* row, const FilterTable& table, const Weight* weights,
                    const AffineNormalization& normalization, float* red, std::size_t plane) {
    for (std::uint32_t o = 0; o < table.outputs; ++o, weights += table.stride) {
        const std::uint8_t* source = row + std::size_t{table.first[o]} * 3;
        std::int32_t sums[3] = {1 << (Bits - 1), 1 << (Bits - 1), 1 << (Bits - 1)};
        for (std::uint32_t tap = 0; tap < table.taps; ++tap)
            for (std::uint32_t c = 0; c < 3; ++c)
                sums[c] += weights[tap] * source[3 * tap + c];
        for (std::uint32_t c = 0; c < 3; ++c)
            red[c * plane + o] = static_cast<float>(sums[c] >> Bits) * normalization.scale[c] + normalization.bias[c];
    }
}

void pack(const FilterTable&, PackedWeights&) {}

void horizontal(const std::uint8_t* row, const FilterTable& table, PackedWeights&,
                const AffineNormalization& normalization, float* red, std::size_t plane) {
    horizontal_row<FilterTable::narrow_bits>(row, table, table.narrow, normalization, red, plane);
}

}   // namespace

const ResampleKernels& portable_kernels() noexcept {
    static constexpr ResampleKernels kernels{vertical, pack, horizontal};
    return kernels;
}

void vertical_wide(const std::uint8_t* rows, std::size_t stride, const std::int32_t* weights, std::uint32_t taps,
                   std::size_t bytes, std::int32_t* sums, std::uint8_t* out) {
    std::fill_n(sums, bytes, wide_half);
    for (std::uint32_t tap = 0; tap < taps; ++tap) {
        const std::uint8_t* source = rows + tap * stride;
        const std::int32_t weight = weights[tap];
        for (std::size_t i = 0; i < bytes; ++i)
            sums[i] += weight * source[i];
    }
    for (std::size_t i = 0; i < bytes; ++i)
        out[i] = static_cast<std::uint8_t>(sums[i] >> FilterTable::wide_bits);
}

void horizontal_wide(const std::uint8_t* row, const FilterTable& table, const AffineNormalization& normalization,
                     float* red, std::size_t plane) {
    horizontal_row<FilterTable::wide_bits>(row, table, table.wider, normalization, red, plane);
}

}   // namespace drawpoint
