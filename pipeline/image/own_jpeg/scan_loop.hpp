#pragma once
// The body of every decode_mcus_…(): compiled once for each instruction set.
#include "pipeline/image/own_jpeg/scan_decoder.hpp"

#include <algorithm>

namespace drawpoint::own_jpeg {

DRAWPOINT_ALWAYS_INLINE bool skip_mcus(ScanState& state, BitReader& reader, std::uint32_t count) noexcept {
    for (; count != 0; --count) {
        for (std::uint32_t b = 0; b < state.block_count; ++b)
            if (!skip_block(reader, state.components[state.blocks[b].component].coding))
                return false;
        if (reader.next > state.data_end + 8)
            return false;
    }
    return true;
}

template <class Idct>
DRAWPOINT_ALWAYS_INLINE bool decode_mcus(ScanState& state, std::uint32_t row, Range columns) noexcept {
    BitReader reader = state.reader;
    const Range window = state.mcu_rows.holds(row)
                             ? Range{std::clamp(state.mcu_columns.begin, columns.begin, columns.end),
                                     std::clamp(state.mcu_columns.end, columns.begin, columns.end)}
                             : Range{columns.end, columns.end};
    if (!skip_mcus(state, reader, window.begin - columns.begin))
        return false;
    int largest = 0;
    for (std::uint32_t column = window.begin; column < window.end; ++column) {
        std::array<int, 6> highest;
        std::uint32_t b = 0;
        for (std::uint32_t p = 0; p < state.pair_count; ++p) {
            ScanPair& pair = state.pairs[p];
            for (std::int16_t* values = pair.coefficients.values; b <= pair.second; ++b, values += 8) {
                ScanComponent& component = state.components[state.blocks[b].component];
                if (component.columns.holds(column * component.across + state.blocks[b].x) &&
                    component.rows.holds(row * component.down + state.blocks[b].y)) {
                    highest[b] = read_block(reader, component.coding, values);
                    if (highest[b] < 0)
                        return false;
                } else {
                    highest[b] = broken_block;
                    if (!skip_block(reader, component.coding))
                        return false;
                }
            }
        }
        if (reader.next > state.data_end + 8)
            return false;
        // Only after all blocks are read: values written two bytes at a time have then reached the cache and can be
        // loaded as vectors.
        for (std::uint32_t p = 0; p < state.pair_count; ++p) {
            ScanPair& pair = state.pairs[p];
            const int most = std::max(highest[pair.first], highest[pair.second]);
            if (most < 0)
                continue;
            SampleRows targets[2] = {{}, {state.unused_samples.data(), 8}};
            for (std::uint32_t i = pair.first; i <= pair.second; ++i) {
                const ScanBlock& block = state.blocks[i];
                const ScanComponent& component = state.components[block.component];
                const std::size_t x = (column - state.mcu_columns.begin) * component.across + block.x;
                const std::size_t y = (row - state.mcu_rows.begin) * component.down + block.y;
                targets[i - pair.first] = {component.samples + y * 8 * component.stride + x * 8, component.stride};
            }
            largest = std::max(largest, Idct::pair(pair.coefficients, pair.quantization, most, targets[0], targets[1]));
        }
    }
    if (largest > max_sample || !skip_mcus(state, reader, columns.end - window.end))
        return false;
    state.reader = reader;
    // The differences of a damaged file could add up to more than 32 bits.
    return std::all_of(state.components.begin(), state.components.end(), [](const ScanComponent& component) {
        return component.coding.prediction < 1 << 24 && component.coding.prediction > -(1 << 24);
    });
}

}   // namespace drawpoint::own_jpeg
