#pragma once
#include "pipeline/image/own_jpeg/jpeg_header.hpp"

#include <array>
#include <cstdint>

namespace drawpoint::own_jpeg {

inline constexpr unsigned ac_bits = 12;   // bits that index a table of AC coefficients
inline constexpr unsigned dc_bits = 10;
inline constexpr unsigned code_bits = 9;
inline constexpr std::uint32_t end_of_block =
    128;   // flag in the amount that a look-up adds to the coefficient's index

/// A symbol and the value bits that follow it, decoded from the next 27 bits.
struct Symbol {
    std::int32_t value;
    std::uint8_t length;   ///< bits of code and value; 0: not a code, or one that this decoder does not support
    std::uint8_t run;      ///< zeros before the value, or end_of_block
};

/// Huffman codes without values, ordered by length: a code of n bits is below `limits[n]`, both shifted left to 16
/// bits.
struct CodeTable {
    bool build(const HuffmanSpec& spec) noexcept;
    /// Length and symbol of the code that `bits` begins with; 0 if there is none.
    [[nodiscard]] std::uint32_t find(std::uint64_t bits) const noexcept;

    std::array<std::uint16_t, 1 << code_bits> first{};   ///< length << 8 | symbol; 0: the code is longer
    std::array<std::uint32_t, 17> limits{};
    std::array<std::int32_t, 17> offsets{};
    std::array<std::uint8_t, 256> symbols{};
    std::uint32_t symbol_count = 0;
};

/// Differences of DC coefficients. An entry: value << 8 | length of code and value; 0: too long for the table.
struct DcTable {
    bool build(const HuffmanSpec& spec) noexcept;
    [[nodiscard]] Symbol find(std::uint64_t bits) const noexcept;

    alignas(64) std::array<std::int32_t, 1 << dc_bits> differences{};
    CodeTable codes;
    HuffmanSpec spec;
};

/// AC coefficients. An entry of `pairs` holds up to two coefficients and an end of block:
///   bits 0-5 length of all codes and values, 0: too long for the table; 6-9 zeros before the first value; 10-15 the
///   second
///   value; 16-23 what to add to the coefficient's index, with end_of_block in it; 24-31 the first value.
/// The second value belongs at that sum, without end_of_block, minus one, and must be written before the first.
struct AcTable {
    bool build(const HuffmanSpec& spec) noexcept;
    [[nodiscard]] Symbol find(std::uint64_t bits) const noexcept;

    alignas(64) std::array<std::uint32_t, 1 << ac_bits> pairs{};
    CodeTable codes;
    HuffmanSpec spec;
};

}   // namespace drawpoint::own_jpeg
