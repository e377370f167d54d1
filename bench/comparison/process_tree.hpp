#pragma once

#include <cstdint>

#include <sys/types.h>

namespace drawpoint::bench {

/// Resources used by a process and its descendants. Descendants that ended count once their parent has waited for them.
struct ProcessUse {
    std::int64_t cpu_ns = 0;
    std::uint64_t minor_faults = 0;
};

/// Reads /proc; 0 for what is not found. CPU time of living processes is exact; that of ended ones comes in ticks of 10
/// ms.
[[nodiscard]] ProcessUse process_tree_use(pid_t root);

}   // namespace drawpoint::bench
