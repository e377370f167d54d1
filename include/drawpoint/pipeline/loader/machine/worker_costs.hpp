#pragma once

#include <cstdint>

namespace drawpoint {

/// The slice of a core that workers ask for: longer than any usual thread's, so that one which wakes takes a worker's core at
/// once.
inline constexpr std::int64_t worker_slice_ns = 10'000'000;

/// Readings of clocks that measuring one claim takes.
inline constexpr std::uint32_t readings_a_claim = 6;

}   // namespace drawpoint
