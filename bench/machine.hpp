#pragma once

#include <cstdint>

namespace drawpoint::bench {

/// Time of all CPUs since boot, in ticks; `stolen` is what the hypervisor gave to other guests. 0 where unknown.
struct ProcessorTime {
    std::uint64_t total = 0, stolen = 0;
};
[[nodiscard]] ProcessorTime processor_time();

/// CPU time of this process.
[[nodiscard]] double process_cpu_seconds() noexcept;

/// The share of the time between two readings that was stolen, 0 … 1.
[[nodiscard]] double steal_share(const ProcessorTime& before, const ProcessorTime& after) noexcept;

/// The number of runnable tasks, averaged over the last minute; negative where unknown.
[[nodiscard]] double load_average();

}   // namespace drawpoint::bench
