#include "pipeline/image/own_jpeg/huffman_tables.hpp"

#include <algorithm>

namespace drawpoint::own_jpeg {
namespace {

constexpr unsigned max_dc_size = 11, max_ac_size = 10;   // of 8-bit images; libjpeg would decode more

// The `size` bits after the first `skip` ones, as the standard's EXTEND reads them.
std::int32_t extended(std::uint64_t bits, unsigned skip, unsigned size) {
    if (size == 0)
        return 0;
    const auto raw = static_cast<std::int32_t>((bits << skip) >> (64 - size));
    return raw >= 1 << (size - 1) ? raw : raw - (1 << size) + 1;
}

constexpr std::uint32_t entry(std::uint32_t length, std::uint32_t run, std::int32_t first, std::int32_t second,
                              std::uint32_t sum) {
    return length | run << 6 | (static_cast<std::uint32_t>(second) & 63) << 10 | sum << 16 |
           static_cast<std::uint32_t>(first) << 24;
}

constexpr std::uint32_t length_of(std::uint32_t entry) { return entry & 63; }
constexpr std::uint32_t sum_of(std::uint32_t entry) { return entry >> 16 & 255; }
constexpr std::int32_t first_of(std::uint32_t entry) { return static_cast<std::int32_t>(entry) >> 24; }

/// A symbol with one of the values it may have.
struct Value {
    std::uint32_t length, run, size;   // of code and value; zeros before it; of the value
    std::int32_t value;
};

// Calls take(value, begin, count) for all values that `Bits` bits hold with their codes: those bits are then one of the
// `count` numbers from `begin` on.
template <unsigned Bits, class Take>
void for_each_value(const CodeTable& codes, const HuffmanSpec& spec, const Take& take) {
    std::uint32_t code = 0, index = 0;
    for (unsigned length = 1; length <= Bits; ++length, code <<= 1)
        for (std::uint32_t i = 0; i < spec.counts[length - 1]; ++i, ++code, ++index) {
            const std::uint32_t run = codes.symbols[index] >> 4, size = codes.symbols[index] & 15;
            if (length + size > Bits)
                continue;
            const std::uint32_t count = 1u << (Bits - length - size);
            for (std::uint32_t raw = 0; raw < 1u << size; ++raw) {
                const bool negative = size != 0 && raw >> (size - 1) == 0;
                const std::int32_t value = static_cast<std::int32_t>(raw) - (negative ? (1 << size) - 1 : 0);
                take(Value{length + size, run, size, value}, (code << size | raw) * count, count);
            }
        }
}

}   // namespace

bool CodeTable::build(const HuffmanSpec& spec) noexcept {
    symbols = spec.symbols;
    first.fill(0);
    std::uint32_t code = 0, index = 0;
    for (unsigned length = 1; length <= 16; ++length) {
        const std::uint32_t count = spec.counts[length - 1];
        offsets[length] = static_cast<std::int32_t>(index) - static_cast<std::int32_t>(code);
        if (count != 0 && code + count >= 1u << length)   // no code may be all ones
            return false;
        if (length <= code_bits)
            for (std::uint32_t i = 0; i < count; ++i)
                std::fill_n(first.begin() + ((code + i) << (code_bits - length)), 1u << (code_bits - length),
                            static_cast<std::uint16_t>(length << 8 | symbols[index + i]));
        code += count;
        index += count;
        limits[length] = code << (16 - length);
        code <<= 1;
    }
    symbol_count = index;
    return true;
}

std::uint32_t CodeTable::find(std::uint64_t bits) const noexcept {
    if (const std::uint32_t entry = first[bits >> (64 - code_bits)])
        return entry;
    const auto code = static_cast<std::uint32_t>(bits >> 48);
    for (unsigned length = code_bits + 1; length <= 16; ++length)
        if (code < limits[length])
            return length << 8 | symbols[static_cast<std::size_t>(offsets[length] +
                                                                  static_cast<std::int32_t>(code >> (16 - length)))];
    return 0;
}

Symbol DcTable::find(std::uint64_t bits) const noexcept {
    const std::uint32_t code = codes.find(bits), size = code & 255, length = code >> 8;
    if (code == 0 || size > max_dc_size)
        return {};
    return {extended(bits, length, size), static_cast<std::uint8_t>(length + size), 0};
}

bool DcTable::build(const HuffmanSpec& from) noexcept {
    spec = from;
    // libjpeg refuses a DC table with symbols above 15, even if no code of them is ever used.
    if (!codes.build(from) || std::any_of(codes.symbols.begin(), codes.symbols.begin() + codes.symbol_count,
                                          [](std::uint8_t symbol) { return symbol > 15; })) {
        spec.defined = false;
        return false;
    }
    differences.fill(0);
    for_each_value<dc_bits>(codes, from, [this](const Value& value, std::uint32_t begin, std::uint32_t count) {
        if (value.size <= max_dc_size)
            std::fill_n(differences.begin() + begin, count, value.value * 256 + static_cast<int>(value.length));
    });
    return true;
}

Symbol AcTable::find(std::uint64_t bits) const noexcept {
    const std::uint32_t code = codes.find(bits), run = code >> 4 & 15, size = code & 15, length = code >> 8;
    if (code == 0 || size > max_ac_size)
        return {};
    if (size == 0)
        return run == 15  ? Symbol{0, static_cast<std::uint8_t>(length), 15}
               : run == 0 ? Symbol{0, static_cast<std::uint8_t>(length), end_of_block}
                          : Symbol{};
    return {extended(bits, length, size), static_cast<std::uint8_t>(length + size), static_cast<std::uint8_t>(run)};
}

bool AcTable::build(const HuffmanSpec& from) noexcept {
    spec = from;
    if (!codes.build(from)) {
        spec.defined = false;
        return false;
    }
    constexpr std::uint32_t entries = 1 << ac_bits, mask = entries - 1;
    // One symbol each, as far as its value is a signed byte.
    std::array<std::uint32_t, entries> single;
    single.fill(0);
    const auto single_entry = [](const Value& value) -> std::uint32_t {
        if (value.size > 7 || (value.size == 0 && value.run != 0 && value.run != 15))
            return 0;
        const bool ends = value.size == 0 && value.run == 0;
        return entry(value.length, value.run, value.value, 0, value.run + 1 + (ends ? end_of_block : 0));
    };
    for_each_value<ac_bits>(codes, from, [&](const Value& value, std::uint32_t begin, std::uint32_t count) {
        std::fill_n(single.begin() + begin, count, single_entry(value));
    });
    pairs = single;
    for_each_value<ac_bits>(codes, from, [&](const Value& value, std::uint32_t begin, std::uint32_t count) {
        const std::uint32_t one = single[begin];
        if (one == 0 || sum_of(one) > end_of_block || count < 2)
            return;
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint32_t two = single[i << value.length], both = value.length + length_of(two);
            if (two == 0 || both > ac_bits)
                continue;
            if (sum_of(two) > end_of_block) {
                pairs[begin + i] = entry(both, value.run, value.value, 0, value.run + 2 + end_of_block);
                continue;
            }
            if (first_of(two) < -32 || first_of(two) > 31)
                continue;
            const std::uint32_t three = single[i << both & mask], all = both + length_of(three);
            const bool ends = sum_of(three) > end_of_block && all <= ac_bits;
            pairs[begin + i] = entry(ends ? all : both, value.run, value.value, first_of(two),
                                     sum_of(one) + sum_of(two) + (ends ? end_of_block : 0));
        }
    });
    return true;
}

}   // namespace drawpoint::own_jpeg
