#pragma once

#include <cstdint>
#include <string>

#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::bench {

/// This machine, for the head of a JSON document.
[[nodiscard]] Machine this_machine();

/// Time of all processors since boot, in ticks; `stolen` is what the hypervisor gave to others. 0 where unknown.
struct ProcessorTime {
    std::uint64_t total = 0, stolen = 0;
};
[[nodiscard]] ProcessorTime processor_time();

/// What this process has taken of processors.
[[nodiscard]] double process_cpu_seconds() noexcept;

/// The share of the time between two readings that was stolen, 0 … 1.
[[nodiscard]] double steal_share(const ProcessorTime& before, const ProcessorTime& after) noexcept;

/// Runnable tasks averaged over the last minute; negative where unknown.
[[nodiscard]] double load_average();

}   // namespace drawpoint::bench
