#include <drawpoint/pipeline/loader_policy.hpp>

#include <algorithm>

namespace drawpoint {

namespace {

constexpr std::uint64_t bit(std::uint32_t slot) noexcept { return std::uint64_t{1} << slot; }

constexpr std::uint64_t target_claim_ns = 50'000;
constexpr std::uint64_t least_claim_ns = 20'000;
constexpr std::uint64_t worth_a_wake_ns =
    25'000;   // of work, against 3-4 µs of the waker and 25 µs until a halted core runs
constexpr std::uint64_t long_batch_ns = 4'000'000;   // from here on a wake per batch is nothing

}   // namespace

LoaderPolicy::LoaderPolicy(const PolicyOptions& options) noexcept
    : batch_size_{options.batch_size},
      num_workers_{options.num_workers},
      depth_{options.prefetch_depth},
      max_overtakes_{options.max_overtakes},
      order_{options.order} {}

std::optional<LoaderPolicy::Admission> LoaderPolicy::admit(std::uint64_t drawn) noexcept {
    if (stopped_ || admitted_ == limit_)
        return std::nullopt;
    if (num_workers_ == 0 && (in_flight() != 0 || position_ != drawn))
        return std::nullopt;
    const std::uint64_t usable = (std::uint64_t{1} << slots()) - 1;
    const std::uint64_t used = open_ | complete_ | handed_;
    const std::uint64_t free = usable & ~used;
    if (free == 0 || static_cast<std::size_t>(std::popcount(used)) >= slots())
        return std::nullopt;
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(free));
    places_[slot] = {.batch = admitted_, .pass_begin = pass_begin_};
    open_ |= bit(slot);
    return Admission{admitted_++, slot};
}

bool LoaderPolicy::complete(std::uint32_t slot, bool failed) noexcept {
    open_ &= ~bit(slot);
    if (abandoned_ & bit(slot)) {
        abandoned_ &= ~bit(slot);
        return false;
    }
    complete_ |= bit(slot);
    places_[slot].failed = failed;
    places_[slot].completed = completions_++;
    return true;
}

std::uint32_t LoaderPolicy::oldest_pending() const noexcept {
    std::uint32_t oldest = 0;
    std::uint64_t first = ~std::uint64_t{0};
    for (std::uint64_t left = in_flight() & ~abandoned_; left != 0; left &= left - 1) {
        const auto slot = static_cast<std::uint32_t>(std::countr_zero(left));
        if (places_[slot].batch < first) {
            first = places_[slot].batch;
            oldest = slot;
        }
    }
    return oldest;
}

std::optional<LoaderPolicy::HandOver> LoaderPolicy::hand_over() noexcept {
    if (complete_ == 0 || stopped_)
        return std::nullopt;
    const std::uint32_t oldest = oldest_pending();
    std::uint32_t slot = oldest;
    const bool only_oldest = order_ == BatchOrder::in_order ||
                             (order_ == BatchOrder::bounded && places_[oldest].overtaken >= max_overtakes_);
    if (only_oldest) {
        if ((complete_ & bit(oldest)) == 0)
            return std::nullopt;
    } else {
        std::uint64_t first = ~std::uint64_t{0};
        for (std::uint64_t left = complete_; left != 0; left &= left - 1) {
            const auto candidate = static_cast<std::uint32_t>(std::countr_zero(left));
            if (places_[candidate].completed < first && places_[candidate].pass_begin == places_[oldest].pass_begin) {
                first = places_[candidate].completed;
                slot = candidate;
            }
        }
        if (first == ~std::uint64_t{0})
            return std::nullopt;
        // Every older one is overtaken, not the oldest alone: each may become the oldest with its count spent.
        for (std::uint64_t left = in_flight() & ~abandoned_; left != 0; left &= left - 1) {
            Place& place = places_[static_cast<std::size_t>(std::countr_zero(left))];
            place.overtaken += place.batch < places_[slot].batch;
        }
    }
    complete_ &= ~bit(slot);
    handed_ |= bit(slot);
    return HandOver{places_[slot].batch, position_++, slot, places_[slot].failed};
}

void LoaderPolicy::release(std::uint32_t slot) noexcept { handed_ &= ~bit(slot); }

LoaderPolicy::Abandoned LoaderPolicy::abandon() noexcept {
    const Abandoned given_up{open_ & ~abandoned_, complete_};
    abandoned_ = open_;
    complete_ = 0;
    limit_ = admitted_;
    return given_up;
}

void LoaderPolicy::retarget(std::size_t num_workers, std::size_t prefetch_depth) noexcept {
    num_workers_ = num_workers;
    depth_ = std::min(prefetch_depth, max_slots - 1);
}

void LoaderPolicy::observe(std::uint64_t samples, std::uint64_t ns) noexcept {
    if (samples == 0)
        return;
    const std::uint64_t measured = std::max<std::uint64_t>(ns * 256 / samples, 1);
    sample_ns_x256_ =
        sample_ns_x256_ == 0 ? measured : std::max<std::uint64_t>((sample_ns_x256_ * 7 + measured) / 8, 1);
}

std::uint32_t LoaderPolicy::claim_size() const noexcept {
    if (sample_ns_x256_ == 0)
        return 1;
    const std::uint64_t share =
        (batch_size_ + std::max<std::size_t>(num_workers_, 1) - 1) / std::max<std::size_t>(num_workers_, 1);
    const std::uint64_t most = std::max(share, least_claim_ns * 256 / sample_ns_x256_);
    const std::uint64_t wanted = std::min(target_claim_ns * 256 / sample_ns_x256_, most);
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1, batch_size_));
}

bool LoaderPolicy::claims_whole_batches() const noexcept {
    return sample_ns_x256_ != 0 && sample_ns_x256_ * batch_size_ <= least_claim_ns * 256;
}

std::size_t LoaderPolicy::wake(std::uint64_t samples) noexcept {
    if (parked_ == 0 || samples == 0)
        return 0;
    const std::size_t active = begun_ - parked_;
    const std::uint64_t claims = (samples + claim_size() - 1) / claim_size();
    std::size_t workers = 0;
    if (sample_ns_x256_ == 0 || samples * sample_ns_x256_ / 256 >= worth_a_wake_ns)
        workers = std::min<std::size_t>(parked_, claims > active ? claims - active : 0);
    if (workers == 0 && active == 0)
        workers = 1;
    parked_ -= workers;
    return workers;
}

std::size_t LoaderPolicy::wake_threshold() const noexcept {
    const std::uint64_t batch_ns = sample_ns_x256_ / 256 * batch_size_;
    return batch_ns > long_batch_ns ? 1 : std::max<std::size_t>((depth_ + 1) / 2, 1);
}

}   // namespace drawpoint
