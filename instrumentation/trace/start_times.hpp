#pragma once

#include <time.h>

#include <cstdint>

#include <drawpoint/instrumentation/clock.hpp>

namespace drawpoint {

/// The recorder's first clock reading, and the system clocks' readings at that time. Nanoseconds.
struct StartTimes {
    std::int64_t start_ns = 0;
    std::uint64_t monotonic_ns = 0, boottime_ns = 0, realtime_ns = 0;
};

/// Reads all clocks together; of several tries, the one that took the least time.
[[nodiscard]] StartTimes read_start_times(const AnyClock&) noexcept;

/// One of the system's clocks, in nanoseconds.
[[nodiscard]] std::uint64_t system_clock_ns(clockid_t) noexcept;

}   // namespace drawpoint
