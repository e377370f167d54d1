#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/replay/prediction.hpp>

namespace drawpoint {

/// Tests, value by value, whether values lie symmetrically around a centre. Each value is a bet on its side of the
/// centre, the higher the further it ranks from the centre among the values so far; what the bets have won is the
/// evidence. One may look after each value, and stop because of what one sees.
///
/// For the logarithms of ratios of two times whose order was drawn by coin the test is exact, whatever the noise: if
/// both are the same program, each ratio and its inverse are equally likely. Outliers count by rank only.
///
/// Use by one thread at a time. Source: Reynolds, A sequential signed-rank test for symmetry, 1975; Vovk and Wang,
/// Nonparametric e-tests of symmetry, 2024.
class SymmetryTest {
public:
    explicit SymmetryTest(double centre) noexcept;

    /// O(log n), and moves up to 8 n bytes. A value equal to the centre is no bet. Throws std::invalid_argument for a
    /// value that is not finite.
    void add(double value);

    /// The most evidence there has been so far that the values lie above the centre, or below it: natural logarithms,
    /// at least 0. If they lie symmetrically around it, the probability of each that it ever reaches log(1 / error) is
    /// at most `error`.
    [[nodiscard]] double above() const noexcept { return above_.most; }
    [[nodiscard]] double below() const noexcept { return below_.most; }

private:
    static constexpr std::size_t bets = 4;
    struct Side {
        std::array<double, bets> won;   // logarithms of what each way to bet has won, times its share
        double most = 0;
        void settle(const std::array<double, bets>& stakes, double sign) noexcept;
    };

    double centre_;
    std::vector<double> distances_;   // sorted
    Side above_, below_;
};

/// The median of the values as `median`, and between `low` and `high` the centres that SymmetryTest does not refute:
/// the probability that `low` is ever above the centre of symmetry, at whatever number of values one looks, is at most
/// `error`, and so it is that `high` is ever below it. Infinite with too few values (for an error of 1 %, with fewer
/// than 9 or so); NaN without any. `low` is above `high` if every centre is refuted: then the values have no common
/// centre. Takes 100 tests of n values. Throws std::invalid_argument if `error` is not above 0 and below 1, or a value
/// is not finite.
[[nodiscard]] Interval centre_of(std::span<const double> values, double error);

}   // namespace drawpoint
