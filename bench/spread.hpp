#pragma once

#include <span>

namespace drawpoint::bench {

/// What is said of one figure over the rounds; NaN for none.
struct Spread {
    double median = 0, low = 0, high = 0;
};

[[nodiscard]] Spread spread_of(std::span<const double> values);

}   // namespace drawpoint::bench
