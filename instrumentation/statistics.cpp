#include <drawpoint/instrumentation/statistics.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace drawpoint::statistics {
namespace {

constexpr std::size_t lanes = 8, block = 128;
constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

double pairwise(std::span<const double> values) noexcept {
    const std::size_t n = values.size();
    if (n < lanes) {
        double total = 0;
        for (double value : values)
            total += value;
        return total;
    }
    if (n <= block) {
        std::array<double, lanes> lane;
        std::copy_n(values.begin(), lanes, lane.begin());
        const std::size_t whole = n - n % lanes;
        for (std::size_t i = lanes; i < whole; i += lanes)
            for (std::size_t k = 0; k < lanes; ++k)
                lane[k] += values[i + k];
        double total = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
        for (std::size_t i = whole; i < n; ++i)
            total += values[i];
        return total;
    }
    const std::size_t half = n / 2 - n / 2 % lanes;
    return pairwise(values.first(half)) + pairwise(values.subspan(half));
}

}   // namespace

double sum(std::span<const double> values) noexcept { return 0.0 + pairwise(values); }

double mean(std::span<const double> values) noexcept {
    return values.empty() ? no_value : sum(values) / static_cast<double>(values.size());
}

double population_std_dev(std::span<const double> values) {
    const double middle = mean(values);
    std::vector<double> squares(values.size());
    std::ranges::transform(values, squares.begin(), [middle](double value) {
        const double deviation = value - middle;
        return deviation * deviation;
    });
    return std::sqrt(mean(squares));
}

double round_half_even(double value) noexcept {
    const double down = std::floor(value), above = value - down;
    if (above == 0.5)
        return 2 * std::floor(std::ceil(value) / 2);
    return above < 0.5 ? down : down + 1;
}

double quantile_of_sorted(std::span<const double> sorted, double q) noexcept {
    if (sorted.empty())
        return no_value;
    const double place = static_cast<double>(sorted.size() - 1) * std::clamp(q, 0.0, 1.0);
    const auto below = static_cast<std::size_t>(place);
    const double part = place - std::floor(place);
    const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
    return part < 0.5 ? low + (high - low) * part : high - (high - low) * (1 - part);
}

double quantile(std::span<const double> values, double q) {
    std::vector<double> sorted(values.begin(), values.end());
    std::ranges::sort(sorted);
    return quantile_of_sorted(sorted, q);
}

}   // namespace drawpoint::statistics
