#pragma once

#include <cstdint>
#include <string>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Times of Linux's scheduler that a replay uses, in nanoseconds. The defaults are those of two cores and CONFIG_HZ=250
/// in kernels 6.15 to 6.18.
struct SchedulerTimes {
    std::int64_t tick_ns = 4'000'000;           ///< of the kernel's timer; 100 µs … 100 ms
    std::int64_t base_slice_ns = 1'400'000;     ///< sysctl_sched_base_slice: a normal thread's slice; up to 1 s
    std::int64_t migration_cost_ns = 500'000;   ///< a thread that ran this recently is not moved; up to 1 s
    std::string assumed{};                      ///< names of those that the recording does not tell, by commas
    bool operator==(const SchedulerTimes&) const = default;
};

/// Those of the machine of a recording. What it does not tell is what Linux has by default, for its number of cores.
[[nodiscard]] SchedulerTimes scheduler_times(const Ledger&);

}   // namespace drawpoint
