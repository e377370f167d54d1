#include "spread.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <drawpoint/instrumentation/statistics.hpp>

namespace drawpoint::bench {

Spread spread_of(std::span<const double> values) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    if (values.empty())
        return {none, none, none};
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return {statistics::quantile(values, 0.5), *low, *high};
}

std::pair<double, double> Share::wilson() const noexcept {
    if (of == 0)
        return {0, 1};
    constexpr double z = 1.959964;
    const auto n = static_cast<double>(of);
    const double p = value(), middle = p + z * z / (2 * n);
    const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n)), by = 1 + z * z / n;
    return {std::max(0.0, (middle - half) / by), std::min(1.0, (middle + half) / by)};
}

}   // namespace drawpoint::bench
