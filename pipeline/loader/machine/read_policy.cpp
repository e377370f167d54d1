#include <drawpoint/pipeline/loader/machine/detail/read_policy.hpp>

#include <algorithm>

namespace drawpoint {

namespace {

constexpr std::uint64_t enough_reads = 2;
// Waiting per sample that makes reading ahead pay; handing a read over costs about 10 µs.
constexpr std::uint64_t worth_ns = 30'000;
constexpr std::uint64_t worth_share = 64;
constexpr std::uint64_t weight = 16;
constexpr std::uint64_t longest_ns = 3600'000'000'000;

/// Updates a moving average, kept in sixteenths, over about the last `weight` observations. The first one sets it.
void observe(std::uint64_t& mean_x16, std::uint64_t count, std::uint64_t ns, bool first) noexcept {
    const std::uint64_t each = std::min(ns / count, longest_ns);
    const std::uint64_t share = first ? weight : std::min(count, weight);
    mean_x16 = (mean_x16 * (weight - share) + each * 16 * share) / weight;
}

}   // namespace

ReadPolicy::ReadPolicy(std::size_t concurrency, std::size_t num_workers) noexcept
    : concurrency_{concurrency}, num_workers_{std::max<std::size_t>(num_workers, 1)} {}

void ReadPolicy::retarget(std::size_t concurrency, std::size_t num_workers) noexcept {
    concurrency_ = concurrency_ != 0 ? concurrency : 0;
    num_workers_ = std::max<std::size_t>(num_workers, 1);
    decide();
}

void ReadPolicy::observe_reads(std::uint64_t reads, std::uint64_t ns, std::uint64_t blocked_ns) noexcept {
    if (reads == 0)
        return;
    observe(read_ns_x16_, reads, ns, reads_ == 0);
    observe(blocked_ns_x16_, reads, blocked_ns, reads_ == 0);
    reads_ = std::min(reads_ + reads, enough_reads);
    decide();
}

void ReadPolicy::observe_samples(std::uint64_t samples, std::uint64_t ns) noexcept {
    if (samples == 0)
        return;
    observe(sample_ns_x16_, samples, ns, sample_ns_x16_ == 0);
    decide();
}

void ReadPolicy::decide() noexcept {
    const std::uint64_t worth_x16 = std::max(worth_ns * 16, sample_ns_x16_ / worth_share);
    ahead_ = concurrency_ != 0 && reads_ >= enough_reads && blocked_ns_x16_ > (ahead_ ? worth_x16 / 2 : worth_x16);
    const std::uint64_t rate_x_latency = read_ns_x16_ * num_workers_ / std::max<std::uint64_t>(sample_ns_x16_, 16) + 1;
    const std::uint64_t need = std::min<std::uint64_t>(rate_x_latency, concurrency_);
    in_flight_ = std::min<std::size_t>(need + need / 2 + 2, std::max<std::size_t>(concurrency_, 1));
    hold_ = std::max<std::size_t>(1, std::min<std::size_t>(2 * need + 8, most_held(concurrency_)));
    wake_below_ = std::max<std::size_t>(1, std::min<std::size_t>(need + need / 4 + 4, hold_));
}

}   // namespace drawpoint
