#pragma once

#include <cstdint>

#include <sys/types.h>

namespace drawpoint::bench {

/// What a process and its descendants have used so far. Descendants that ended count once their parent has waited for them.
struct ProcessUse {
    std::int64_t cpu_ns = 0;
    std::uint64_t minor_faults = 0;
};

/// Reads /proc; 0 for what it cannot find. CPU time of living processes is exact, of ended ones in ticks of 10 ms.
[[nodiscard]] ProcessUse process_tree_use(pid_t root);

}   // namespace drawpoint::bench
