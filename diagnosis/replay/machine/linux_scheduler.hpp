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
/// How often a core that falls idle looks for a thread on other cores: once in this many times. (From 6.18 on, newidle
/// balancing is random, with a probability that depends on its past success. In six runs of loaders it took 19 to 34 %
/// of the threads that it could have taken, by sched_switch.)
inline constexpr std::uint32_t newidle_one_in = 4;

}   // namespace linux_scheduler
}   // namespace drawpoint
