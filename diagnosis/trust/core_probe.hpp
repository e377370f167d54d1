#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace drawpoint {

/// Runs the same work on `threads` threads at once and says how many nanoseconds the slowest took.
using CoreProbe = std::function<std::int64_t(std::size_t threads)>;

/// The speed of each of `threads` cores that all work, against one alone: 0 … 1. Of `probes` of either kind the fastest
/// counts, all together or not: what disturbs them only slows. They alternate in groups, since clocks change with time.
[[nodiscard]] double core_efficiency(const CoreProbe&, std::size_t threads, std::size_t probes);

}   // namespace drawpoint
