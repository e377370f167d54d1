#pragma once

#include <cstddef>

#include <drawpoint/instrumentation/host/host.hpp>

namespace drawpoint {

/// What the cores do together, by many short probes. The fastest probe of each kind counts, because disturbances only
/// slow them down.
struct Capacity {
    double cores = 1;             ///< usable: affinity and quota
    double core_efficiency = 1;   ///< speed of each core when all compute, against one alone; 0 … 1
    double copy_efficiency = 1;   ///< the same for copying memory that fits in no cache
};

/// Measures the machine now, by computing and by copying 24 MB: `probes` probes of about 2 ms each on one core, and as
/// many on all cores at once, which start together behind a barrier and last as long as the slowest. Takes about 4 ×
/// probes × 2 ms, more on a busy machine, and 48 MB per core (at most 1 GiB). Starts and joins its own threads. With
/// one core, measures nothing. Throws std::bad_alloc and std::system_error.
[[nodiscard]] Capacity measure_capacity(std::size_t probes = 150);

}   // namespace drawpoint
