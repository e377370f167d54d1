#pragma once
#include "pipeline/image/own_jpeg/block_reader.hpp"
#include "pipeline/image/own_jpeg/idct.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace drawpoint::own_jpeg {

/// A range of blocks or MCUs: [begin, end).
struct Range {
    std::uint32_t begin = 0, end = 0;
    [[nodiscard]] bool holds(std::uint32_t place) const noexcept { return place >= begin && place < end; }
};

/// A component's part of every MCU, and the destination of its samples.
struct ScanComponent {
    BlockCoding coding;
    std::uint32_t across = 1, down = 1;   ///< blocks in an MCU
    Range columns, rows;                  ///< the blocks that are needed
    std::uint8_t* samples = nullptr;      ///< destination of the window's first MCU
    std::size_t stride = 0;
};

/// One block of an MCU.
struct ScanBlock {
    std::uint32_t component = 0, x = 0, y = 0;   ///< x, y: within the component's part of the MCU, in blocks
};

/// Two blocks of an MCU that are transformed together; `second` equals `first` where only one is left.
struct ScanPair {
    std::uint32_t first = 0, second = 0;
    QuantizationPair quantization;
    CoefficientPair coefficients{};
};

/// The state of decoding a piece of a scan. The pairs' coefficients are zero between calls.
struct ScanState {
    BitReader reader;
    const std::uint8_t* data_end = nullptr;   ///< end of the segment; reader_padding zeros follow it
    Range mcu_columns, mcu_rows;              ///< the window
    std::uint32_t component_count = 0, block_count = 0, pair_count = 0;
    std::array<ScanComponent, 3> components;
    std::array<ScanBlock, 6> blocks;
    std::array<ScanPair, 3> pairs;
    alignas(64) std::array<std::uint8_t, 64> unused_samples;   ///< destination of the missing second block of a pair
};

/// Reads the MCUs `columns` of row `row`, and decodes those in the window. False: give up.
using DecodeMcus = bool (*)(ScanState& state, std::uint32_t row, Range columns) noexcept;

bool decode_mcus_portable(ScanState& state, std::uint32_t row, Range columns) noexcept;
#if defined(DRAWPOINT_OWN_JPEG_AVX2)
bool decode_mcus_avx2(ScanState& state, std::uint32_t row, Range columns) noexcept;
#endif

}   // namespace drawpoint::own_jpeg
