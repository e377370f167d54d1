#include <drawpoint/instrumentation/ledger/detail/duration_histogram.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <utility>

#include <drawpoint/instrumentation/detail/wrapping.hpp>

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

static_assert(DurationHistogram::most_counts == a_doubling * (64 - doubling_bits));   // 2^63 - 1 ns is in the last one

}   // namespace

DurationHistogram::DurationHistogram(Parts parts) noexcept {
    if (parts.counts.size() > most_counts || !std::isfinite(parts.mean_ns) || !std::isfinite(parts.squares) ||
        parts.squares < 0)
        return;
    std::uint64_t calls = 0;
    for (const std::uint64_t count : parts.counts) {
        if (count > std::numeric_limits<std::uint64_t>::max() - calls)
            return;
        calls += count;
    }
    if (calls == 0 || parts.counts.back() == 0 || parts.min_ns > parts.max_ns)
        return;
    parts_ = std::move(parts);
    parts_.mean_ns = std::clamp(parts_.mean_ns, static_cast<double>(parts_.min_ns), static_cast<double>(parts_.max_ns));
    calls_ = calls;
}

void DurationHistogram::add(std::int64_t ns, std::uint64_t calls) {
    if (calls == 0)
        return;
    const std::size_t bucket = bucket_of(ns);
    if (bucket >= parts_.counts.size())
        parts_.counts.resize(bucket + 1);
    parts_.counts[bucket] += calls;
    calls_ += calls;
    parts_.total_ns = wrapping_sum(parts_.total_ns, static_cast<std::int64_t>(static_cast<std::uint64_t>(ns) * calls));
    parts_.min_ns = std::min(parts_.min_ns, ns);
    parts_.max_ns = std::max(parts_.max_ns, ns);
    const auto value = static_cast<double>(ns);
    const auto added = static_cast<double>(calls);
    const double off = value - parts_.mean_ns;
    parts_.mean_ns += off * added / static_cast<double>(calls_);
    parts_.squares += off * (value - parts_.mean_ns) * added;
}

void DurationHistogram::add(const DurationHistogram& other) {
    if (other.calls_ == 0)
        return;
    parts_.counts.resize(std::max(parts_.counts.size(), other.parts_.counts.size()));
    for (std::size_t bucket = 0; bucket < other.parts_.counts.size(); ++bucket)
        parts_.counts[bucket] += other.parts_.counts[bucket];
    const auto mine = static_cast<double>(calls_), its = static_cast<double>(other.calls_);
    const double off = other.parts_.mean_ns - parts_.mean_ns;
    parts_.mean_ns += off * its / (mine + its);
    parts_.squares += other.parts_.squares + off * off * mine * its / (mine + its);
    calls_ += other.calls_;
    parts_.total_ns = wrapping_sum(parts_.total_ns, other.parts_.total_ns);
    parts_.min_ns = std::min(parts_.min_ns, other.parts_.min_ns);
    parts_.max_ns = std::max(parts_.max_ns, other.parts_.max_ns);
}

double DurationHistogram::std_dev_ns() const noexcept {
    return calls_ == 0 ? 0.0 : std::sqrt(parts_.squares / static_cast<double>(calls_));
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
    for (std::uint64_t before = parts_.counts[0]; before <= rank; before += parts_.counts[bucket])
        ++bucket;
    return std::clamp(middle_of(bucket), static_cast<double>(parts_.min_ns), static_cast<double>(parts_.max_ns));
}

}   // namespace drawpoint
