#pragma once
#include <drawpoint/pipeline/image/resize.hpp>
#include "pipeline/image/pixels/scratch_buffer.hpp"

#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// For each output position of one axis: which input positions it reads and with what weight.
/// Weights are fixed point, never negative, and sum to 1 exactly, so a sum never leaves 0..255.
struct FilterTable {
    static constexpr int horizontal_bits = 14;   ///< two products are summed in 32 bits
    static constexpr int vertical_bits = 16;     ///< products are cut to 16 bits; a weight of 1 is stored as 65535
    static constexpr int wide_bits = 22;         ///< Pillow's precision: for many taps, whose weights are small
    static constexpr std::uint32_t most_narrow_taps = 128;

    std::uint32_t outputs = 0;
    std::uint32_t taps = 0;     ///< taps an output really has, at most the input's length
    std::uint32_t stride = 0;   ///< taps rounded up to a multiple of 4; the rest have weight 0
    bool wide = false;
    std::uint32_t* first = nullptr;    ///< [outputs]; first + taps <= input length
    std::uint16_t* narrow = nullptr;   ///< [outputs][stride] unless wide
    std::int32_t* wider = nullptr;     ///< [outputs][stride] if wide

    /// Fills the table that maps `input` positions to `output` ones, mirrored if `flip`; `narrow_bits` is
    /// horizontal_bits or vertical_bits.
    void fill(std::uint32_t input, std::uint32_t output, ResizeFilter filter, bool flip, int narrow_bits);

    /// Makes room for the table of `input` positions and of any fewer, so that fill() will not allocate for them;
    /// returns the number of taps of `input` positions, the largest of all. The table's contents are lost.
    std::uint32_t reserve(std::uint32_t input, std::uint32_t output, ResizeFilter filter);

private:
    double* shape(std::uint32_t output, std::uint32_t tap_count);

    ScratchBuffer<std::uint32_t, 16384> first_memory_;
    ScratchBuffer<std::byte, 131072> weight_memory_;
    ScratchBuffer<double, 16384> exact_memory_;
};

}   // namespace drawpoint
