#include "pipeline/image/pixel_kernels.hpp"
#include "pipeline/image/pixel_kernels_vector.hpp"

#include <algorithm>

namespace drawpoint {
namespace {

// 16 bytes: what nearly every processor has, and the compiler can do in scalars where it has not.
struct Portable {
    typedef std::int16_t Words __attribute__((vector_size(16)));
    typedef std::uint16_t Unsigned __attribute__((vector_size(16)));
    typedef std::int32_t Wide __attribute__((vector_size(32)));
    typedef std::uint32_t WideUnsigned __attribute__((vector_size(32)));
    typedef std::uint8_t Bytes __attribute__((vector_size(8)));

    static Words widen(const std::uint8_t* from) {
        Words words;
        for (std::size_t i = 0; i < 8; ++i)
            words[i] = from[i];
        return words;
    }
    static Words rounded(Words a, std::int16_t b) {
        Words words;
        for (std::size_t i = 0; i < 8; ++i)
            words[i] = static_cast<std::int16_t>((std::int32_t{a[i]} * b + 16384) >> 15);
        return words;
    }
    static Unsigned high_unsigned(Unsigned a, std::uint16_t b) {
        Unsigned words;
        for (std::size_t i = 0; i < 8; ++i)
            words[i] = static_cast<std::uint16_t>((std::uint32_t{a[i]} * b) >> 16);
        return words;
    }
    static Words green(Words blue, Words red) {
        Words words;
        for (std::size_t i = 0; i < 8; ++i)
            words[i] = static_cast<std::int16_t>((-11277 * blue[i] - 23401 * red[i] + 32768) >> 16);
        return words;
    }
    static void store_pairs(std::uint8_t* to, Words even, Words odd) {
        for (std::size_t i = 0; i < 8; ++i) {
            to[2 * i] = static_cast<std::uint8_t>(std::clamp<std::int16_t>(even[i], 0, 255));
            to[2 * i + 1] = static_cast<std::uint8_t>(std::clamp<std::int16_t>(odd[i], 0, 255));
        }
    }
};

void deinterleave(const std::uint8_t* interleaved, std::size_t pixels, std::uint8_t* rgb, std::size_t plane) {
    for (std::size_t i = 0; i < pixels; ++i)
        for (std::size_t c = 0; c < 3; ++c)
            rgb[c * plane + i] = interleaved[3 * i + c];
}

void interleave(const std::uint8_t* rgb, std::size_t plane, std::size_t pixels, std::uint8_t* interleaved) {
    for (std::size_t i = 0; i < pixels; ++i)
        for (std::size_t c = 0; c < 3; ++c)
            interleaved[3 * i + c] = rgb[c * plane + i];
}

void store(const FloatRows& out, std::size_t c, std::uint32_t at, std::int32_t level) {
    out.red[c * out.plane + at] = static_cast<float>(level) * out.normalization.scale[c] + out.normalization.bias[c];
}
void store(const LevelRows& out, std::size_t c, std::uint32_t at, std::int32_t level) {
    out.red[c * out.plane + at] = static_cast<std::uint8_t>(level);
}

template <int Bits, class Weight, class Rows>
void horizontal_row(const std::uint8_t* row, std::size_t plane, const FilterTable& table, const Weight* weights,
                    const Rows& out) {
    for (std::size_t c = 0; c < 3; ++c) {
        const Weight* weight = weights;
        for (std::uint32_t o = 0; o < table.outputs; ++o, weight += table.stride) {
            const std::uint8_t* source = row + c * plane + table.first[o];
            std::int32_t sum = 1 << (Bits - 1);
            for (std::uint32_t tap = 0; tap < table.taps; ++tap)
                sum += static_cast<std::int32_t>(weight[tap]) * source[tap];
            store(out, c, o, sum >> Bits);
        }
    }
}

void pack(const FilterTable&, PackedWeights& packed) { packed.layout = PackedWeights::Layout::as_in_table; }

template <class Rows>
void horizontal(const std::uint8_t* row, std::size_t plane, const FilterTable& table, PackedWeights&, const Rows& out) {
    horizontal_row<FilterTable::horizontal_bits>(row, plane, table, table.narrow, out);
}

void finish() {}

}   // namespace

const PixelKernels& portable_kernels() noexcept {
    static constexpr PixelKernels kernels = VectorKernels<Portable>::with(
        deinterleave, interleave, pack, horizontal<FloatRows>, horizontal<LevelRows>, finish);
    return kernels;
}

void vertical_wide(const std::uint8_t* rows, std::size_t stride, const std::int32_t* weights, std::uint32_t taps,
                   std::size_t bytes, std::int32_t* sums, std::uint8_t* out) {
    constexpr std::int32_t half = 1 << (FilterTable::wide_bits - 1);
    std::fill_n(sums, bytes, half);
    for (std::uint32_t tap = 0; tap < taps; ++tap) {
        const std::uint8_t* source = rows + tap * stride;
        const std::int32_t weight = weights[tap];
        for (std::size_t i = 0; i < bytes; ++i)
            sums[i] += weight * source[i];
    }
    for (std::size_t i = 0; i < bytes; ++i)
        out[i] = static_cast<std::uint8_t>(sums[i] >> FilterTable::wide_bits);
}

void horizontal_wide(const std::uint8_t* row, std::size_t plane, const FilterTable& table, const FloatRows& out) {
    horizontal_row<FilterTable::wide_bits>(row, plane, table, table.wider, out);
}
void horizontal_wide(const std::uint8_t* row, std::size_t plane, const FilterTable& table, const LevelRows& out) {
    horizontal_row<FilterTable::wide_bits>(row, plane, table, table.wider, out);
}

}   // namespace drawpoint
