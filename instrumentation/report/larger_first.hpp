#pragma once

#include <cmath>

namespace drawpoint {

/// The order of a table's rows. NaN stands last: without a place of its own it would leave a sort no order.
inline bool larger_first(double a, double b) noexcept { return std::isnan(b) ? !std::isnan(a) : a > b; }

}   // namespace drawpoint
