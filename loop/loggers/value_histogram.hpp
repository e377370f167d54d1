#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

namespace drawpoint {

/// How many of some values lie in each of up to 30 equal parts of their range.
struct ValueHistogram {
    double low = 0;
    std::vector<double> right_edges, counts;   ///< of each part, which has its right edge
    double count = 0, sum = 0, sum_of_squares = 0;
};

/// Of the finite values; nullopt if there is none.
[[nodiscard]] inline std::optional<ValueHistogram> histogram_of(std::span<const double> values) {
    ValueHistogram histogram;
    double high = 0;
    for (const double value : values)
        if (std::isfinite(value)) {
            histogram.low = histogram.count > 0 ? std::min(histogram.low, value) : value;
            high = histogram.count > 0 ? std::max(high, value) : value;
            ++histogram.count;
            histogram.sum += value;
            histogram.sum_of_squares += value * value;
        }
    if (!(histogram.count > 0))
        return std::nullopt;
    const std::size_t parts = histogram.low == high ? 1 : 30;
    const double width = (high - histogram.low) / static_cast<double>(parts);
    histogram.right_edges.assign(parts, high);
    histogram.counts.assign(parts, 0);
    for (std::size_t part = 0; part + 1 < parts; ++part)
        histogram.right_edges[part] = histogram.low + width * static_cast<double>(part + 1);
    for (const double value : values)
        if (std::isfinite(value)) {
            const auto part = std::ranges::lower_bound(histogram.right_edges, value) - histogram.right_edges.begin();
            ++histogram.counts[std::min(static_cast<std::size_t>(part), parts - 1)];
        }
    return histogram;
}

}   // namespace drawpoint
