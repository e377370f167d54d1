#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace drawpoint {

/// Runs the same work on `threads` threads at once and returns the nanoseconds of the slowest.
using CoreProbe = std::function<std::int64_t(std::size_t threads)>;

/// The speed of each of `threads` cores when all work, against one alone: 0 … 1. Takes the fastest of `probes` probes
/// alone and of as many together, because disturbances only slow them down. The two kinds alternate in groups, because
/// clock rates change with time.
[[nodiscard]] double core_efficiency(const CoreProbe&, std::size_t threads, std::size_t probes);

}   // namespace drawpoint
