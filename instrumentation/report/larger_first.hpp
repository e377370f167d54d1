#pragma once

#include <cmath>

namespace drawpoint {

/// Compares for a descending sort. NaN comes last; without this rule NaN would make the order inconsistent.
inline bool larger_first(double a, double b) noexcept { return std::isnan(b) ? !std::isnan(a) : a > b; }

}   // namespace drawpoint
