#pragma once

#include <cstdint>

namespace drawpoint {

/// The time slice that workers ask the scheduler for. It is longer than other threads' slices, so that a thread that
/// wakes takes a worker's core at once.
inline constexpr std::int64_t worker_slice_ns = 10'000'000;

/// Clock readings needed to measure one claim.
inline constexpr std::uint32_t readings_a_claim = 6;

}   // namespace drawpoint
