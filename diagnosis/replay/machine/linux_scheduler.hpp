#pragma once

#include <cstdint>

namespace drawpoint {

/// Constants of Linux's scheduler that a replay assumes, each with its name in the kernel (6.15 to 6.18). Those that
/// differ between machines are `SchedulerTimes`.
namespace linux_scheduler {

inline constexpr double load_half_life_ns = 32e6;            ///< PELT: half-life of a core's average load
inline constexpr std::int64_t load_window_ns = 10'000'000;   ///< how often the limit of SIS_UTIL is computed anew
/// The imbalance_pct of sched_domain, 117 %, squared, as SIS_UTIL uses it.
inline constexpr double imbalance_squared = 1.37;
/// By how much more the load of a woken thread's own core counts (WA_BIAS: half of imbalance_pct).
inline constexpr double affine_bias = 1.08;

}   // namespace linux_scheduler
}   // namespace drawpoint
