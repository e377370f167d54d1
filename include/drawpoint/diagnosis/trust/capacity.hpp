#pragma once

#include <cstddef>

#include <drawpoint/instrumentation/host/host.hpp>

namespace drawpoint {

/// How much slower cores are while all of them work.
struct Capacity {
    double cores = 1;             ///< usable: affinity and quota; a quota may make it fractional
    double core_efficiency = 1;   ///< speed of each core when all compute, relative to one alone; 0 … 1
    double copy_efficiency = 1;   ///< the same for copying memory that fits in no cache
};

/// Measures the machine now, by computing and by copying 24 MB: `probes` probes of about 2 ms each on one core, and as
/// many on all whole usable cores at once, which start together and last as long as the slowest. The fastest probe of
/// each kind counts, because disturbances only slow them down. Takes about 4 × probes × 2 ms, more on a busy machine,
/// and 48 MB per core (at most 1 GiB). Starts and joins its own threads. With fewer than two cores it measures nothing:
/// both efficiencies are 1. Throws std::bad_alloc and std::system_error.
[[nodiscard]] Capacity measure_capacity(std::size_t probes = 150);

}   // namespace drawpoint
