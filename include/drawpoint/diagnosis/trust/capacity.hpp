#pragma once

#include <cstddef>

#include <drawpoint/instrumentation/host/host.hpp>

namespace drawpoint {

/// What the cores do together, by many short probes: of each kind the fastest counts, for disturbances only slow.
struct Capacity {
    double cores = 1;             ///< usable: affinity and quota
    double core_efficiency = 1;   ///< speed of each of `cores` when all compute, against one alone; 0 … 1
    double copy_efficiency = 1;   ///< the same for copying memory that no cache holds
};

/// The machine's, measured now: of computing and of copying 24 MB, `probes` of about 2 ms alone and on all cores at once,
/// each round begun behind a barrier and as long as its slowest. Takes some 4 × probes × 2 ms, more beside others, and
/// 48 MB a core (1 GiB at most). Starts and joins its own threads. With one core there is nothing to measure. Throws
/// std::bad_alloc and std::system_error.
[[nodiscard]] Capacity measure_capacity(std::size_t probes = 150);

}   // namespace drawpoint
