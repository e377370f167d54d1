#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace drawpoint {

/// Statistics of durations that do not keep every value. Calls, total, minimum and maximum are exact, and the standard
/// deviation is exact up to floating-point rounding. Quantiles of durations of 0 ns or more are within 1 % of the exact
/// ones. Buckets are 1 ns wide below 128 ns; above, there are 64 for each power of two, so a bucket's middle is within
/// 1/128 of every value in it. At most 3712 counts, 30 kB. One thread at a time.
class DurationHistogram {
public:
    static constexpr double quantile_error_share = 0.01;
    static constexpr std::size_t most_counts = 3712;

    /// What it is made of, for storing it.
    struct Parts {
        std::vector<std::uint64_t> counts;   ///< by bucket, up to the last one with a call
        std::int64_t total_ns = 0;
        std::int64_t min_ns = std::numeric_limits<std::int64_t>::max();
        std::int64_t max_ns = std::numeric_limits<std::int64_t>::min();
        double mean_ns = 0, squares = 0;   ///< `squares`: the sum of squared deviations from the mean
        bool operator==(const Parts&) const = default;
    };

    DurationHistogram() = default;
    /// Makes it of stored parts; an empty one of parts that no histogram has.
    explicit DurationHistogram(Parts) noexcept;
    [[nodiscard]] const Parts& parts() const noexcept { return parts_; }

    /// Adds `calls` calls of `ns` each. O(1); allocates only if `ns` is longer than all before.
    void add(std::int64_t ns, std::uint64_t calls = 1);
    /// Adds everything that was added to `other`. O(buckets).
    void add(const DurationHistogram& other);

    [[nodiscard]] std::uint64_t calls() const noexcept { return calls_; }
    [[nodiscard]] std::int64_t total_ns() const noexcept { return parts_.total_ns; }
    [[nodiscard]] std::int64_t min_ns() const noexcept { return parts_.min_ns; }
    [[nodiscard]] std::int64_t max_ns() const noexcept { return parts_.max_ns; }
    /// The population standard deviation; 0 for no calls.
    [[nodiscard]] double std_dev_ns() const noexcept;
    /// The q-quantile, 0 ≤ q ≤ 1, interpolated as `statistics::quantile` does; NaN for no calls. O(buckets).
    [[nodiscard]] double quantile_ns(double q) const noexcept;

    bool operator==(const DurationHistogram&) const = default;

private:
    [[nodiscard]] double ranked_ns(std::uint64_t rank) const noexcept;

    Parts parts_;
    std::uint64_t calls_ = 0;   // the sum of the counts
};

}   // namespace drawpoint
