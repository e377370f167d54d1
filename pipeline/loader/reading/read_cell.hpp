#pragma once

#include <cstdint>

namespace drawpoint {

/// State of one sample's read.
enum class ReadState : std::uint32_t {
    idle,         ///< nobody has begun it
    taken,        ///< a worker has the sample, or nobody wants it any more
    reading,      ///< a reader is filling the buffer
    waited_for,   ///< the same, and a worker is waiting for it
    ready         ///< the buffer holds the bytes or the error
};

/// The value of a sample's cell in ReadAhead: the state of the read and, from `reading` on, the number of its buffer.
constexpr std::uint32_t cell_value(ReadState state, std::uint32_t buffer = 0) noexcept {
    return buffer << 3 | static_cast<std::uint32_t>(state);
}
constexpr ReadState state_of(std::uint32_t cell) noexcept { return static_cast<ReadState>(cell & 7); }
constexpr std::uint32_t buffer_of(std::uint32_t cell) noexcept { return cell >> 3; }

}   // namespace drawpoint
