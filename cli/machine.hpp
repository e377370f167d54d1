#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::cli {

/// Cores this process may use: the smaller of its affinity and its cgroup's quota, at least 1.
[[nodiscard]] std::int64_t usable_cores();

/// Cores the scheduler may run this process on.
[[nodiscard]] std::int64_t affinity_cores();

/// Cores' worth of time the cgroup grants, if it limits it.
[[nodiscard]] std::optional<double> cgroup_cores();

/// Of the LibTorch this program was built with.
[[nodiscard]] std::string libtorch_version();

/// This machine, this build, and the libraries it uses.
[[nodiscard]] Machine this_machine();

}   // namespace drawpoint::cli
