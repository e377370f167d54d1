#pragma once
#include <cstddef>
#include <cstdint>

namespace drawpoint::own_jpeg {

/// A stretch of compressed data whose stuffed zeros have been removed.
struct Segment {
    std::size_t bytes = 0;     ///< written to `out`
    std::size_t next = 0;      ///< offset from `from` of the marker that ends it
    std::uint8_t marker = 0;   ///< the byte after the marker's FF; 0: the file ends without a marker
};

/// Copies the data before the first marker to `out`, FF 00 as FF. `out` has room for `bytes` + 32 bytes; bytes beyond
/// the segment are arbitrary.
Segment unstuff(const std::uint8_t* from, std::size_t bytes, std::uint8_t* out) noexcept;

}   // namespace drawpoint::own_jpeg
