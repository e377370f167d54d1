#pragma once

#include <cmath>
#include <string>

#include <drawpoint/instrumentation/text/format.hpp>

namespace drawpoint {

/// "+1.20 s", "-35.0 ms", "0 s".
[[nodiscard]] inline std::string signed_duration(double ns) {
    return (ns > 0 ? "+" : ns < 0 ? "-" : "") + format_duration(std::abs(ns) * 1e-9);
}

}   // namespace drawpoint
