#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// CPU use between two rows, in percent of one core: by this process with its children, and by all others on its cores.
/// Unknown counters count as 0.
struct HostUse {
    std::int64_t own = 0, others = 0;
};
[[nodiscard]] inline HostUse host_use(const HostRow& before, const HostRow& after) noexcept {
    const auto used = [&](std::int64_t HostRow::* what) {
        const bool known = before.*what != no_stamp && after.*what != no_stamp;
        return known ? static_cast<double>(after.*what) - static_cast<double>(before.*what) : 0.0;
    };
    const double ns = static_cast<double>(after.at_ns) - static_cast<double>(before.at_ns);
    const auto percent = [ns](double used_ns) {
        return ns > 0 ? static_cast<std::int64_t>(std::llround(std::clamp(100 * used_ns / ns, 0.0, 1e6))) : 0;
    };
    const double own = used(&HostRow::own_cpu_ns) + used(&HostRow::children_cpu_ns);
    return {percent(own), percent(used(&HostRow::busy_ns) - own)};
}

}   // namespace drawpoint
