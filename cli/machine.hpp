#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::cli {

/// Cores this process may use (`usable_cores`), counting a part of one as one.
[[nodiscard]] inline std::int64_t whole_usable_cores() { return std::llround(std::ceil(usable_cores())); }

/// The version of LibTorch that the program was built with.
[[nodiscard]] std::string libtorch_version();

/// This machine, this build, and the libraries it uses.
[[nodiscard]] Machine this_machine();

}   // namespace drawpoint::cli
