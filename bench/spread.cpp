#include "spread.hpp"

#include <algorithm>
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

}   // namespace drawpoint::bench
