#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace drawpoint {

/// Durations without a list of them. Calls, total, least and greatest are exact, the standard deviation to a double's
/// rounding; a quantile is within 1 % of that of the list, for durations from 0 ns on. Buckets are 1 ns wide below
/// 128 ns, from there on 64 to each doubling, so that a bucket's middle is within 1/128 of whatever it holds. At most
/// 3712 counts, 30 kB. One thread at a time.
class DurationHistogram {
public:
    static constexpr double quantile_error_share = 0.01;

    /// `calls` durations of so long. O(1); allocates only where a duration is longer than all before.
    void add(std::int64_t ns, std::uint64_t calls = 1);
    /// As if what `other` was given had been added here. O(buckets).
    void add(const DurationHistogram& other);

    [[nodiscard]] std::uint64_t calls() const noexcept { return calls_; }
    [[nodiscard]] std::int64_t total_ns() const noexcept { return total_ns_; }
    [[nodiscard]] std::int64_t min_ns() const noexcept { return min_ns_; }
    [[nodiscard]] std::int64_t max_ns() const noexcept { return max_ns_; }
    /// Of the population; 0 for no calls.
    [[nodiscard]] double std_dev_ns() const noexcept;
    /// The q-quantile, 0 ≤ q ≤ 1, interpolated as `statistics::quantile` does; NaN for no calls. O(buckets).
    [[nodiscard]] double quantile_ns(double q) const noexcept;

    bool operator==(const DurationHistogram&) const = default;

private:
    [[nodiscard]] double ranked_ns(std::uint64_t rank) const noexcept;

    std::vector<std::uint64_t> counts_;   // by bucket, up to the last one that holds a call
    std::uint64_t calls_ = 0;
    std::int64_t total_ns_ = 0;
    std::int64_t min_ns_ = std::numeric_limits<std::int64_t>::max(), max_ns_ = std::numeric_limits<std::int64_t>::min();
    double mean_ns_ = 0, squares_ = 0;   // of the deviations from the mean
};

}   // namespace drawpoint
