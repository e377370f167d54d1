#include <drawpoint/instrumentation/ledger/detail/duration_histogram.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

namespace drawpoint {
namespace {

constexpr unsigned doubling_bits = 6;
constexpr std::size_t a_doubling = std::size_t{1} << doubling_bits;

std::size_t bucket_of(std::int64_t ns) noexcept {
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
    if (value < 2 * a_doubling)
        return static_cast<std::size_t>(value);
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - 1 - doubling_bits;
    return shift * a_doubling + static_cast<std::size_t>(value >> shift);
}

double middle_of(std::size_t bucket) noexcept {
    if (bucket < 2 * a_doubling)
        return static_cast<double>(bucket);
    const std::size_t shift = bucket / a_doubling - 1;
    const std::uint64_t least = std::uint64_t{a_doubling + bucket % a_doubling} << shift;
    return static_cast<double>(least) + static_cast<double>((std::uint64_t{1} << shift) - 1) / 2;
}

}   // namespace

void DurationHistogram::add(std::int64_t ns, std::uint64_t calls) {
    if (calls == 0)
        return;
    const std::size_t bucket = bucket_of(ns);
    if (bucket >= counts_.size())
        counts_.resize(bucket + 1);
    counts_[bucket] += calls;
    calls_ += calls;
    total_ns_ += ns * static_cast<std::int64_t>(calls);
    min_ns_ = std::min(min_ns_, ns);
    max_ns_ = std::max(max_ns_, ns);
    const auto value = static_cast<double>(ns);
    const auto added = static_cast<double>(calls);
    const double off = value - mean_ns_;
    mean_ns_ += off * added / static_cast<double>(calls_);
    squares_ += off * (value - mean_ns_) * added;
}

void DurationHistogram::add(const DurationHistogram& other) {
    if (other.calls_ == 0)
        return;
    counts_.resize(std::max(counts_.size(), other.counts_.size()));
    for (std::size_t bucket = 0; bucket < other.counts_.size(); ++bucket)
        counts_[bucket] += other.counts_[bucket];
    const auto mine = static_cast<double>(calls_), its = static_cast<double>(other.calls_);
    const double off = other.mean_ns_ - mean_ns_;
    mean_ns_ += off * its / (mine + its);
    squares_ += other.squares_ + off * off * mine * its / (mine + its);
    calls_ += other.calls_;
    total_ns_ += other.total_ns_;
    min_ns_ = std::min(min_ns_, other.min_ns_);
    max_ns_ = std::max(max_ns_, other.max_ns_);
}

double DurationHistogram::std_dev_ns() const noexcept {
    return calls_ == 0 ? 0.0 : std::sqrt(squares_ / static_cast<double>(calls_));
}

double DurationHistogram::quantile_ns(double q) const noexcept {
    if (calls_ == 0)
        return std::numeric_limits<double>::quiet_NaN();
    const double place = static_cast<double>(calls_ - 1) * std::clamp(q, 0.0, 1.0);
    const auto below = static_cast<std::uint64_t>(place);
    const double low = ranked_ns(below), high = ranked_ns(std::min(below + 1, calls_ - 1));
    return low + (high - low) * (place - std::floor(place));
}

double DurationHistogram::ranked_ns(std::uint64_t rank) const noexcept {
    std::size_t bucket = 0;
    for (std::uint64_t before = counts_[0]; before <= rank; before += counts_[bucket])
        ++bucket;
    return std::clamp(middle_of(bucket), static_cast<double>(min_ns_), static_cast<double>(max_ns_));
}

}   // namespace drawpoint
