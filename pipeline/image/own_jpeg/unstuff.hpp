#pragma once
#include <cstddef>
#include <cstdint>

namespace drawpoint::own_jpeg {

/// One stretch of compressed data without its stuffed zeros.
struct Segment {
    std::size_t bytes = 0;     ///< written to `out`
    std::size_t next = 0;      ///< where the marker that ends it begins, counted from `from`
    std::uint8_t marker = 0;   ///< what follows its FF; 0: the file ends without one
};

/// Writes what lies before the first marker to `out`, with FF for FF 00. `out` has room for `bytes` + 32 bytes; what is in it
/// beyond the segment is arbitrary.
Segment unstuff(const std::uint8_t* from, std::size_t bytes, std::uint8_t* out) noexcept;

}   // namespace drawpoint::own_jpeg
