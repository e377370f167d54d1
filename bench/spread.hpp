#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace drawpoint::bench {

/// Summary of one figure over the rounds; all NaN if there are no rounds.
struct Spread {
    double median = 0, low = 0, high = 0;
};

[[nodiscard]] Spread spread_of(std::span<const double> values);

/// k of n and the 95 % interval of its share after Wilson.
struct Share {
    std::size_t of = 0, hits = 0;
    [[nodiscard]] double value() const noexcept {
        return of == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(of);
    }
    [[nodiscard]] std::pair<double, double> wilson() const noexcept;
    void count(bool hit) noexcept {
        ++of;
        hits += hit ? 1 : 0;
    }
};

}   // namespace drawpoint::bench
