#include <drawpoint/diagnosis/paired/symmetry_test.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include <drawpoint/instrumentation/statistics.hpp>

namespace drawpoint {

namespace {

// The ways to bet: three that stake by rank, up to the median distance, and one that stakes nearly all on each sign.
// The first find small differences; the last one finds large differences in few values.
constexpr std::array<double, 3> stakes_by_rank{0.3, 0.6, 0.9};
constexpr double stake_by_sign = 0.97;

/// The highest centre refuted because values lie above it, to 2^-50 of the values' range; minus infinity: none is.
double refuted_from_above(std::span<const double> values, double evidence) {
    const auto refuted = [&](double centre) {
        SymmetryTest test{centre};
        return std::ranges::any_of(values, [&](double value) {
            test.add(value);
            return test.above() >= evidence;
        });
    };
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const auto [least, most] = std::ranges::minmax(values);
    double low = std::nextafter(least, -infinity), high = most;
    if (!refuted(low))
        return -infinity;
    // The lower the centre, the more values lie above it, and the further away: refuted centres have no gap.
    for (int halvings = 0; halvings < 50; ++halvings) {
        const double middle = std::midpoint(low, high);
        (refuted(middle) ? low : high) = middle;
    }
    return low;
}

}   // namespace

SymmetryTest::SymmetryTest(double centre) noexcept : centre_{centre} {
    above_.won.fill(-std::log(static_cast<double>(bets)));
    below_.won = above_.won;
}

void SymmetryTest::Side::settle(const std::array<double, bets>& stakes, double sign) noexcept {
    double sum = 0;
    for (std::size_t i = 0; i < bets; ++i) {
        won[i] += std::log1p(sign * stakes[i]);
        sum += std::exp(won[i] - most);
    }
    most = std::max(most, most + std::log(sum));
}

void SymmetryTest::add(double value) {
    if (!std::isfinite(value))
        throw std::invalid_argument{"a test of symmetry needs finite values, got " + std::to_string(value)};
    const double beyond = value - centre_, distance = std::abs(beyond);
    distances_.insert(std::ranges::upper_bound(distances_, distance), distance);
    if (beyond == 0)
        return;
    const auto rank = static_cast<double>(std::ranges::upper_bound(distances_, distance) - distances_.begin());
    const double weight = std::min(1.0, 2 * rank / static_cast<double>(distances_.size()));
    std::array<double, bets> stakes;
    std::ranges::transform(stakes_by_rank, stakes.begin(), [&](double stake) { return stake * weight; });
    stakes.back() = stake_by_sign;
    above_.settle(stakes, beyond > 0 ? 1 : -1);
    below_.settle(stakes, beyond > 0 ? -1 : 1);
}

Interval centre_of(std::span<const double> values, double error) {
    if (!(error > 0 && error < 1))
        throw std::invalid_argument{"error must be between 0 and 1, got " + std::to_string(error)};
    if (values.empty()) {
        constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
        return {unknown, unknown, unknown};
    }
    const double evidence = -std::log(error);
    std::vector<double> negated(values.size());
    std::ranges::transform(values, negated.begin(), std::negate{});
    return {statistics::quantile(values, 0.5), refuted_from_above(values, evidence),
            -refuted_from_above(negated, evidence)};
}

}   // namespace drawpoint
