#pragma once

#include <span>

namespace drawpoint::bench {

/// Summary of one figure over the rounds; all NaN if there are no rounds.
struct Spread {
    double median = 0, low = 0, high = 0;
};

[[nodiscard]] Spread spread_of(std::span<const double> values);

}   // namespace drawpoint::bench
