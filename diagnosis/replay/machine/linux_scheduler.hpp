#pragma once

#include <cstdint>

namespace drawpoint {

/// Numbers of Linux's scheduler as the replay uses them, each beside its name in the kernel (6.12 to 6.18, two cores).
namespace linux_scheduler {

inline constexpr std::int64_t tick_ns = 4'000'000;         ///< CONFIG_HZ=250
inline constexpr std::int64_t base_slice_ns = 1'400'000;   ///< sysctl_sched_base_slice: a usual thread's slice
inline constexpr std::int64_t migration_cost_ns =
    500'000;   ///< sysctl_sched_migration_cost: one that ran so lately is not moved
inline constexpr double load_half_life_ns = 32e6;            ///< PELT: a core's average load
inline constexpr std::int64_t load_window_ns = 10'000'000;   ///< how often SIS_UTIL's limit is computed anew
inline constexpr double imbalance_squared = 1.37;   ///< sched_domain's imbalance_pct of 117 %, as SIS_UTIL uses it
/// A core that falls idle looks for a thread elsewhere once in so many times (newidle balancing throws dice from 6.18 on, by how
/// often it found one): in six runs of loaders it took 19 to 34 % of those that it could have (sched_switch).
inline constexpr std::uint32_t newidle_one_in = 4;

}   // namespace linux_scheduler
}   // namespace drawpoint
