#pragma once
#include "pipeline/image/own_jpeg/bit_reader.hpp"
#include "pipeline/image/own_jpeg/huffman_tables.hpp"

#include <array>
#include <cstdint>
#include <cstring>

namespace drawpoint::own_jpeg {

/// Two blocks of coefficients side by side, as the IDCT loads them: row r of the first at 16 r, of the second at 16 r +
/// 8. Elements beyond the 128th belong to no block; reading a damaged block may write them.
struct alignas(64) CoefficientPair {
    std::int16_t values[160];
};

/// Index in a CoefficientPair of coefficient k in zigzag order; beyond both blocks for k > 63.
inline constexpr std::array<std::uint8_t, 128> zigzag_places = [] {
    std::array<std::uint8_t, 128> places{};
    places.fill(128);
    int row = 0, column = 0;
    for (std::size_t k = 0; k < 64; ++k) {
        places[k] = static_cast<std::uint8_t>(row * 16 + column);
        const bool up = (row + column) % 2 == 0;
        if (up && column == 7)
            ++row;
        else if (up && row == 0)
            ++column;
        else if (!up && row == 7)
            ++column;
        else if (!up && column == 0)
            ++row;
        else {
            row += up ? -1 : 1;
            column += up ? 1 : -1;
        }
    }
    return places;
}();

/// What is needed to decode the blocks of one component.
struct BlockCoding {
    const DcTable* dc = nullptr;
    const AcTable* ac = nullptr;
    const std::uint8_t* quantization = nullptr;   ///< in zigzag order
    std::uint32_t dc_limit = 0;                   ///< a larger DC coefficient exceeds 16 bits when dequantised
    std::int32_t prediction = 0;
};

// Reading a block returns an upper bound of its highest coefficient's index, or a negative value: give up.
inline constexpr int broken_block = -1;

/// Decodes symbol by symbol with every check, for what the fast loops below cannot decide. `block` null: skip the
/// block.
int read_block_carefully(BitReader& reader, BlockCoding& coding, std::int16_t* block) noexcept;

DRAWPOINT_ALWAYS_INLINE bool read_difference(BitReader& reader, BlockCoding& coding) noexcept {
    const std::int32_t entry = coding.dc->differences[reader.bits >> (64 - dc_bits)];
    if (__builtin_expect(entry != 0, 1)) {
        reader.drop(static_cast<std::uint32_t>(entry) & 255);
        coding.prediction += entry >> 8;
        return true;
    }
    const Symbol symbol = coding.dc->find(reader.bits);
    reader.drop(symbol.length);
    reader.refill();
    coding.prediction += symbol.value;
    return symbol.length != 0;
}

/// Writes the coefficients of one table look-up, from index k on, into `block`. False: give up. Needs ac_bits valid
/// bits.
DRAWPOINT_ALWAYS_INLINE bool look_up(BitReader& reader, const BlockCoding& coding, const AcTable& table,
                                     std::int16_t* block, std::uint32_t& k) noexcept {
    const std::uint32_t entry = table.pairs[reader.bits >> (64 - ac_bits)];
    if (__builtin_expect((entry & 63) != 0, 1)) {
        reader.drop(entry & 63);
        const std::uint32_t sum = entry >> 16 & 255;
        block[zigzag_places[(k + sum - 1) & 127]] =
            static_cast<std::int16_t>(static_cast<std::int16_t>(entry & 0xFFFF) >> 10);
        block[zigzag_places[k + (entry >> 6 & 15)]] = static_cast<std::int16_t>(static_cast<std::int32_t>(entry) >> 24);
        k += sum;
        return true;
    }
    reader.refill();
    const Symbol symbol = table.find(reader.bits);
    reader.drop(symbol.length);
    reader.refill();
    k += symbol.run;
    if (k <= 63) {
        const std::int32_t dequantised = symbol.value * coding.quantization[k];
        block[zigzag_places[k]] = static_cast<std::int16_t>(symbol.value);
        ++k;
        return symbol.length != 0 && dequantised == static_cast<std::int16_t>(dequantised);
    }
    ++k;
    return symbol.run == end_of_block;
}

/// As look_up(), but drops the coefficients.
DRAWPOINT_ALWAYS_INLINE bool look_past(BitReader& reader, const AcTable& table, std::uint32_t& k) noexcept {
    const std::uint32_t entry = table.pairs[reader.bits >> (64 - ac_bits)];
    if (__builtin_expect((entry & 63) != 0, 1)) {
        reader.drop(entry & 63);
        k += entry >> 16 & 255;
        return true;
    }
    reader.refill();
    const Symbol symbol = table.find(reader.bits);
    reader.drop(symbol.length);
    reader.refill();
    k += symbol.run + 1u;
    return symbol.length != 0;
}

/// Decodes a block into `block`, the first or second of a pair, which must be all zero. Its dequantised values fit 16
/// bits.
DRAWPOINT_ALWAYS_INLINE int read_block(BitReader& reader, BlockCoding& coding, std::int16_t* block) noexcept {
    reader.refill();
    const BitReader before = reader;
    const std::int32_t prediction = coding.prediction;
    if (!read_difference(reader, coding) ||
        static_cast<std::uint32_t>(coding.prediction) + coding.dc_limit > 2 * coding.dc_limit)
        return broken_block;
    block[0] = static_cast<std::int16_t>(coding.prediction);

    const AcTable& table = *coding.ac;
    std::uint32_t k = 1;
    // One refill() suffices for three look-ups. Written out, since compilers disagree about unrolling this.
    for (;;) {
        if (!look_up(reader, coding, table, block, k))
            return broken_block;
        if (k >= 64)
            break;
        if (!look_up(reader, coding, table, block, k))
            return broken_block;
        if (k >= 64)
            break;
        if (!look_up(reader, coding, table, block, k))
            return broken_block;
        if (k >= 64)
            break;
        reader.refill();
    }
    if (__builtin_expect(k - end_of_block - 1 <= 62,
                         1))   // an end of block that stands alone counts as one coefficient
        return k == end_of_block + 2 ? 0 : static_cast<int>(k - end_of_block - 1);
    if (k == 64)
        return 63;
    // The last look-up took symbols of the next block, or there are too many coefficients.
    for (int row = 0; row < 8; ++row)
        std::memset(block + row * 16, 0, 8 * sizeof *block);
    BitReader again = before;
    coding.prediction = prediction;
    const int highest = read_block_carefully(again, coding, block);
    reader = again;
    return highest;
}

/// Reads past a block without storing its coefficients.
DRAWPOINT_ALWAYS_INLINE bool skip_block(BitReader& reader, BlockCoding& coding) noexcept {
    reader.refill();
    const BitReader before = reader;
    const std::int32_t prediction = coding.prediction;
    if (!read_difference(reader, coding))
        return false;
    const AcTable& table = *coding.ac;
    std::uint32_t k = 1;
    for (;;) {
        if (!look_past(reader, table, k))
            return false;
        if (k >= 64)
            break;
        if (!look_past(reader, table, k))
            return false;
        if (k >= 64)
            break;
        if (!look_past(reader, table, k))
            return false;
        if (k >= 64)
            break;
        reader.refill();
    }
    if (__builtin_expect(k - end_of_block - 1 <= 62, 1) || k == 64)
        return true;
    BitReader again = before;
    coding.prediction = prediction;
    const bool whole = read_block_carefully(again, coding, nullptr) != broken_block;
    reader = again;
    return whole;
}

}   // namespace drawpoint::own_jpeg
