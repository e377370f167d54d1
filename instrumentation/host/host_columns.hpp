#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

struct HostColumn {
    std::string_view name;
    std::int64_t HostRow::* value;
};

/// What a host's row holds besides its time. Position + 1 is the field's number in drawpoint_trace.proto.
inline constexpr std::array<HostColumn, 10> host_columns{{{"own_cpu_ns", &HostRow::own_cpu_ns},
                                                          {"busy_ns", &HostRow::busy_ns},
                                                          {"steal_ns", &HostRow::steal_ns},
                                                          {"throttled_ns", &HostRow::throttled_ns},
                                                          {"cpu_pressure_ns", &HostRow::cpu_pressure_ns},
                                                          {"io_pressure_ns", &HostRow::io_pressure_ns},
                                                          {"memory_pressure_ns", &HostRow::memory_pressure_ns},
                                                          {"major_faults", &HostRow::major_faults},
                                                          {"involuntary_switches", &HostRow::involuntary_switches},
                                                          {"resident_bytes", &HostRow::resident_bytes}}};

/// What was used between two rows, in percent of a core: by this process, and by all others on its cores. What is not known
/// counts as nothing used.
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
    const double own = used(&HostRow::own_cpu_ns);
    return {percent(own), percent(used(&HostRow::busy_ns) - own)};
}

}   // namespace drawpoint
