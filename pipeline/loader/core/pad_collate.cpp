#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include <drawpoint/pipeline/loader/core/collate.hpp>

namespace drawpoint {

namespace {

using Value = std::array<std::byte, 8>;

[[noreturn]] void refuse_value(double value, const char* type) {
    throw std::invalid_argument{"pad: value must be one of type " + std::string{type} + ", got " +
                                std::to_string(value)};
}

template <class T>
Value stored(T value) {
    Value bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

template <class T>
Value whole(double value, const char* type) {
    // The bounds as doubles: the upper one of int64 rounds up to 2^63, which no longer fits.
    if (!(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
          value < std::ldexp(1.0, std::numeric_limits<T>::digits) && value == std::trunc(value)))
        refuse_value(value, type);
    return stored(static_cast<T>(value));
}

/// Rounds to a 16-bit float with `exponent_bits` bits of exponent; ties to even.
std::uint16_t to_half(double value, int exponent_bits) {
    const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const auto infinity = static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << fraction_bits);
    if (std::isnan(value))
        return static_cast<std::uint16_t>(sign | infinity | 1 << (fraction_bits - 1));
    const double size = std::abs(value);
    if (size == 0 || std::isinf(size))
        return static_cast<std::uint16_t>(sign | (size == 0 ? 0 : infinity));
    const int exponent = std::max(std::ilogb(size), 1 - bias);
    const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, fraction_bits - exponent)));
    // A fraction that rounds up carries into the exponent by itself, also from the largest number into infinity.
    const std::uint32_t bits =
        (static_cast<std::uint32_t>(exponent + bias - 1) << static_cast<std::uint32_t>(fraction_bits)) + steps;
    return static_cast<std::uint16_t>(sign | std::min<std::uint32_t>(bits, infinity));
}

Value value_of(ScalarType type, double value) {
    switch (type) {
    case ScalarType::uint8: return whole<std::uint8_t>(value, "uint8");
    case ScalarType::int8: return whole<std::int8_t>(value, "int8");
    case ScalarType::int16: return whole<std::int16_t>(value, "int16");
    case ScalarType::int32: return whole<std::int32_t>(value, "int32");
    case ScalarType::int64: return whole<std::int64_t>(value, "int64");
    case ScalarType::boolean:
        if (value != 0 && value != 1)
            refuse_value(value, "boolean");
        return stored(static_cast<std::uint8_t>(value));
    case ScalarType::float16: return stored(to_half(value, 5));
    case ScalarType::bfloat16: return stored(to_half(value, 8));
    case ScalarType::float32: return stored(static_cast<float>(value));
    case ScalarType::float64: break;
    }
    return stored(value);
}

/// Fills `bytes` bytes, a multiple of `value_bytes`, with copies of the value.
void fill(std::byte* out, std::size_t bytes, const Value& value, std::size_t value_bytes) {
    if (bytes == 0)
        return;
    std::memcpy(out, value.data(), value_bytes);
    for (std::size_t done = value_bytes; done < bytes; done *= 2)
        std::memcpy(out + done, out, std::min(done, bytes - done));
}

/// A sample's block in its batch: the sample is copied into it and padded.
struct Block {
    std::span<const std::int64_t> sizes, padded;
    std::size_t value_bytes;
    const Value& value;

    /// Size of the block's dimensions `from` and later.
    [[nodiscard]] std::size_t padded_bytes(std::size_t from) const {
        std::size_t bytes = value_bytes;
        for (std::size_t dimension = from; dimension < padded.size(); ++dimension)
            bytes *= static_cast<std::size_t>(padded[dimension]);
        return bytes;
    }

    /// Copies dimension `at` and later; returns the end of what it has read.
    const std::byte* copy(std::size_t at, const std::byte* from, std::byte* to) const {
        const std::size_t item = padded_bytes(at + 1), size = static_cast<std::size_t>(sizes[at]);
        if (std::ranges::equal(sizes.subspan(at + 1), padded.subspan(at + 1))) {
            if (size * item != 0)
                std::memcpy(to, from, size * item);
            from += size * item;
        } else {
            for (std::size_t i = 0; i < size; ++i)
                from = copy(at + 1, from, to + i * item);
        }
        fill(to + size * item, (static_cast<std::size_t>(padded[at]) - size) * item, value, value_bytes);
        return from;
    }
};

/// Writes ones into the part of a zeroed block that belongs to the sample.
void mark(std::byte* block, std::span<const std::int64_t> padded, std::span<const std::int64_t> real) {
    if (real.size() == 1) {
        std::fill_n(block, real[0], std::byte{1});
        return;
    }
    std::int64_t stride = 1;
    for (const std::int64_t size : padded.subspan(1))
        stride *= size;
    for (std::int64_t i = 0; i < real[0]; ++i)
        mark(block + i * stride, padded.subspan(1), real.subspan(1));
}

std::string shape_text(std::span<const std::int64_t> shape, bool varies) {
    std::string text;
    for (const std::int64_t size : shape)
        text += (text.empty() ? "" : ", ") + (varies && size == 0 ? "*" : std::to_string(size));
    return "[" + text + "]";
}

}   // namespace

PadCollate::PadCollate(const SampleLayout& layout, PadOptions options)
    : layout_{layout}, options_{options}, fill_{value_of(layout.type, options.value)} {
    if (options.multiple_of < 1)
        throw std::invalid_argument{"pad: multiple_of must be at least 1, got 0"};
    if (constexpr std::size_t most = std::size_t{1} << 30; options.multiple_of > most)
        throw std::invalid_argument{"pad: multiple_of must be at most " + std::to_string(most) + ", got " +
                                    std::to_string(options.multiple_of)};
    if (layout.rank > layout.shape.size())
        throw std::invalid_argument{"pad: the layout's rank must be at most 4, got " + std::to_string(layout.rank)};
    const auto shape = std::span{layout_.shape}.first(layout_.rank);
    for (const std::int64_t size : shape)
        if (size < 0)
            throw std::invalid_argument{"pad: the layout's sizes must be at least 0, got " + std::to_string(size)};
    if (std::ranges::count(shape, 0) == 0)
        throw std::invalid_argument{"pad: no size of the layout " + shape_text(shape, true) +
                                    " varies (is 0): such samples need no collate function"};
}

void PadCollate::collate(const FinishedSamples& batch, CollatedBatch& out) const {
    const std::size_t rank = layout_.rank, n = batch.samples.size();
    const auto expected = std::span{layout_.shape}.first(rank);
    std::array<std::int64_t, 5> padded{static_cast<std::int64_t>(n)};   // n, then the padded sizes
    std::ranges::copy(expected, padded.begin() + 1);
    std::array<std::int64_t, 5> mask_shape{static_cast<std::int64_t>(n)};
    std::array<std::size_t, 4> varying{};   // dimensions
    std::size_t varying_count = 0;
    for (std::size_t dimension = 0; dimension < rank; ++dimension)
        if (expected[dimension] == 0)
            varying[varying_count++] = dimension;

    for (std::size_t i = 0; i < n; ++i) {
        const SampleLayout& found = batch.samples[i].layout();
        bool fits = found.type == layout_.type && found.rank == rank;
        for (std::size_t dimension = 0; fits && dimension < rank; ++dimension) {
            fits = expected[dimension] == 0 || found.shape[dimension] == expected[dimension];
            padded[dimension + 1] = std::max(padded[dimension + 1], found.shape[dimension]);
        }
        if (!fits)
            throw std::invalid_argument{"pad: sample " + std::to_string(batch.indices[i]) + " has shape " +
                                        shape_text(std::span{found.shape}.first(found.rank), false) +
                                        (found.type == layout_.type ? "" : " and another type") + ", where " +
                                        shape_text(expected, true) + " is expected"};
    }
    const auto multiple = static_cast<std::int64_t>(options_.multiple_of);
    for (std::size_t k = 0; k < varying_count; ++k) {
        std::int64_t& size = padded[varying[k] + 1];
        size = (size + multiple - 1) / multiple * multiple;
        mask_shape[k + 1] = size;
    }

    const std::size_t value_bytes = size_of(layout_.type);
    const auto sizes = std::span{padded}.subspan(1, rank);
    const std::span<std::byte> data = out.add("data", layout_.type, std::span{padded}.first(rank + 1));
    for (std::size_t i = 0; i < n && !data.empty(); ++i) {
        const SampleBuffer& sample = batch.samples[i];
        const Block block{std::span{sample.layout().shape}.first(rank), sizes, value_bytes, fill_};
        block.copy(0, sample.data().data(), data.data() + i * block.padded_bytes(0));
    }

    const std::array<std::int64_t, 2> lengths_shape{static_cast<std::int64_t>(n),
                                                    static_cast<std::int64_t>(varying_count)};
    const auto lengths = out.add_values<std::int64_t>("lengths", ScalarType::int64,
                                                      std::span{lengths_shape}.first(varying_count == 1 ? 1 : 2));
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < varying_count; ++k)
            lengths[i * varying_count + k] = batch.samples[i].layout().shape[varying[k]];
    if (!options_.mask)
        return;
    const auto mask = out.add("mask", ScalarType::boolean, std::span{mask_shape}.first(varying_count + 1));
    if (mask.empty())
        return;
    std::ranges::fill(mask, std::byte{0});
    const std::size_t item = mask.size() / n;
    for (std::size_t i = 0; i < n; ++i) {
        std::array<std::int64_t, 4> real{};
        std::copy_n(lengths.begin() + static_cast<std::ptrdiff_t>(i * varying_count), varying_count, real.begin());
        mark(mask.data() + i * item, std::span{mask_shape}.subspan(1, varying_count),
             std::span{real}.first(varying_count));
    }
}

}   // namespace drawpoint
