#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace drawpoint {

namespace {

constexpr std::uint64_t bit(std::uint32_t slot) noexcept { return std::uint64_t{1} << slot; }

constexpr std::uint64_t all_slots = bit(LoaderPolicy::max_slots) - 1;
constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t ample = 4;   // multiple of the largest batch so far that is allowed for an open one
constexpr double seldom = 2.5;       // standard deviations that a sum of sizes exceeds once in hundreds of batches
constexpr double least_share = 1.0 / 64, seldom_shrunk = 1.0 / 8;

constexpr std::uint64_t sum_of(std::uint64_t a, std::uint64_t b) noexcept {
    return a > unlimited - b ? unlimited : a + b;
}

constexpr std::uint64_t target_claim_ns = 50'000;
constexpr std::uint64_t least_claim_ns = 20'000;
// Work worth a wake-up, which costs the waker 3 to 4 µs and takes 25 µs until a halted core runs.
constexpr std::uint64_t worth_a_wake_ns = 25'000;
constexpr std::uint64_t long_batch_ns = 4'000'000;   // from here on one wake-up per batch costs next to nothing

constexpr std::uint64_t fewest_uses = 16;
constexpr double use_kept = 1 - 1.0 / 256;   // kept from claim to claim, so that rare long waits are remembered
// Shares of waiting in (computing + waiting), and of queueing in (computing + queueing).
constexpr double little_waiting = 0.05, much_waiting = 0.15, some_queueing = 0.01;

}   // namespace

LoaderPolicy::LoaderPolicy(const PolicyOptions& options) noexcept
    : batch_size_{options.batch_size},
      num_workers_{options.num_workers},
      depth_{options.prefetch_depth},
      rule_{options.order},
      next_rule_{rule_},
      budget_{options.batches_budget_bytes},
      largest_{options.batch_bytes_hint},
      calm_from_{options.batch_bytes_hint != 0 ? 0 : unlimited},
      cores_{options.cores} {}

std::optional<LoaderPolicy::Admission> LoaderPolicy::admit(std::uint64_t drawn, std::uint64_t unclaimed) noexcept {
    drawn_ = std::max(drawn_, drawn);
    lacks_bytes_ = false;
    if (stopped_ || admitted_ == limit_)
        return std::nullopt;
    if (num_workers_ == 0 && (in_flight() != 0 || position_ != drawn))
        return std::nullopt;
    const std::uint64_t usable = (std::uint64_t{1} << slots()) - 1;
    const std::uint64_t used = open_ | complete_ | handed_;
    const std::uint64_t free = usable & ~used;
    if (free == 0 || static_cast<std::size_t>(std::popcount(used)) >= slots())
        return std::nullopt;
    auto slot = static_cast<std::uint32_t>(std::countr_zero(free));
    if (budget_ != 0) {
        const auto fitting = slot_within_budget(free, unclaimed);
        lacks_bytes_ = !fitting;
        if (!fitting)
            return std::nullopt;
        slot = *fitting;
    }
    places_[slot] = {.rule = rule_,
                     .batch = admitted_,
                     .pass_begin = pass_begin_,
                     .bytes = places_[slot].bytes,
                     .passing = places_[slot].passing,
                     .own_before = places_[slot].own()};
    open_ |= bit(slot);
    return Admission{admitted_++, slot};
}

// ---------------------------------------------------------------------------------------------- bytes

std::uint64_t LoaderPolicy::charged_bytes() const noexcept {
    std::uint64_t sum = bytes_;
    for (std::uint64_t left = open_; left != 0; left &= left - 1) {
        const std::uint64_t bytes = places_[static_cast<std::size_t>(std::countr_zero(left))].bytes;
        sum = sum_of(sum, largest_ > bytes ? largest_ - bytes : 0);
    }
    return sum;
}

/// The free slot with the most memory, so that the least must be allocated; trims() then frees that of other free slots
/// if necessary. nullopt: the batch does not fit.
std::optional<std::uint32_t> LoaderPolicy::slot_within_budget(std::uint64_t free,
                                                              std::uint64_t unclaimed) const noexcept {
    const bool alone = (open_ | complete_) == 0 && drawn_ == position_;   // then admit it, or the loop waits for ever
    if (calm_from_ == unlimited && open_ != 0 && has_budget())
        return std::nullopt;   // the size of the first batch is unknown until it is made
    auto slot = static_cast<std::uint32_t>(std::countr_zero(free));
    for (std::uint64_t left = free; left != 0; left &= left - 1) {
        const auto candidate = static_cast<std::uint32_t>(std::countr_zero(left));
        if (places_[candidate].bytes > places_[slot].bytes)
            slot = candidate;
    }
    const std::uint64_t others = ~(open_ | complete_ | handed_ | bit(slot)) & all_slots;
    std::uint64_t idle = 0;
    for (std::uint64_t left = others; left != 0; left &= left - 1)
        idle += places_[static_cast<std::size_t>(std::countr_zero(left))].bytes;
    const std::uint64_t held = places_[slot].bytes;
    const std::uint64_t wanted = sum_of(charged_bytes(), largest_ > held ? largest_ - held : 0);
    const std::uint64_t excess = wanted > budget_ ? wanted - budget_ : 0;
    if (excess > idle && !alone)
        return std::nullopt;
    if (open_ != 0 && unclaimed != 0 && has_budget()) {
        const std::uint64_t unknown = static_cast<std::uint64_t>(std::popcount(open_)) + 1;
        if (unclaimed > 1 || completions_ < calm_from_ || excess != 0 ||
            largest_ > (budget_ - wanted) / (unknown * (ample - 1)))
            return std::nullopt;
    }
    return slot;
}

/// Frees the memory of free slots, the smallest first, because large blocks are the most useful to later batches.
void LoaderPolicy::trim_until(std::uint64_t bytes_to_go, std::uint64_t slots) noexcept {
    while (bytes_to_go != 0) {
        std::size_t smallest = max_slots;
        for (std::uint64_t left = slots; left != 0; left &= left - 1) {
            const auto candidate = static_cast<std::size_t>(std::countr_zero(left));
            const std::uint64_t bytes = places_[candidate].bytes;
            if (bytes != 0 && (smallest == max_slots || bytes < places_[smallest].bytes))
                smallest = candidate;
        }
        if (smallest == max_slots)
            return;
        const std::uint64_t bytes = std::exchange(places_[smallest].bytes, 0);
        places_[smallest].passing = 0;
        bytes_ -= bytes;
        bytes_to_go -= std::min(bytes, bytes_to_go);
        trims_ |= bit(static_cast<std::uint32_t>(smallest));
    }
}

void LoaderPolicy::holds(std::uint32_t slot, std::uint64_t bytes, std::uint64_t passing) noexcept {
    Place& place = places_[slot];
    bytes_ += bytes - place.bytes;
    place.bytes = bytes;
    place.passing = passing;
    most_bytes_ = std::max(most_bytes_, bytes_);
    const bool is_first = calm_from_ == unlimited && (open_ & bit(slot)) == 0 && bytes != 0;
    if (is_first || (bytes > largest_ && calm_from_ != unlimited))
        calm_from_ = completions_ + 2 * slots();
    largest_ = std::max(largest_, bytes);
}

std::uint64_t LoaderPolicy::trims() noexcept {
    if (budget_ == 0)
        return 0;
    if (const std::uint64_t charged = charged_bytes(); charged > budget_)
        trim_until(charged - budget_, ~(open_ | complete_ | handed_) & all_slots);
    return std::exchange(trims_, 0);
}

/// Called at the hand-over, because later the memory may move on to another slot or stay with the user.
void LoaderPolicy::note_finished(const Place& place) noexcept {
    const auto share_of = [](std::uint64_t count) { return std::max(1.0 / static_cast<double>(count), least_share); };
    const double share = share_of(++finished_), beyond = static_cast<double>(place.own()) - finished_mean_;
    finished_mean_ += share * beyond;
    finished_variance_ = (1 - share) * (finished_variance_ + share * beyond * beyond);
    if (place.own_before != 0)
        shrunk_share_ += share_of(++reused_) * ((place.own() < place.own_before ? 1 : 0) - shrunk_share_);
}

std::uint64_t LoaderPolicy::expected_batches_bytes(std::uint64_t most) const noexcept {
    if (largest_ == 0)
        return bytes_;
    const auto largest = static_cast<double>(largest_);
    const auto room = static_cast<double>(budget_ > largest_ ? budget_ - largest_ : 0);
    const double mean = finished_ != 0 ? finished_mean_ : largest;
    const bool slots_grow = shrunk_share_ < seldom_shrunk;   // slots hardly ever shrink
    const auto spread = [this](double batches) { return seldom * std::sqrt(finished_variance_ * batches); };
    // Sample buffers count besides the batch in the making when that is admitted; then one set of them is its own.
    std::uint64_t passing = 0, most_passing = 0;
    for (const Place& place : places_) {
        passing += place.passing;
        most_passing = std::max(most_passing, place.passing);
    }
    auto fitting = static_cast<double>(depth_);
    while (fitting > 0 && fitting * mean + static_cast<double>(passing) - (slots_grow ? 0 : spread(fitting)) > room)
        --fitting;
    double finished =
        std::min(fitting * mean + spread(fitting), fitting * largest) + static_cast<double>(passing - most_passing);
    if (slots_grow && fitting == static_cast<double>(depth_))
        finished = fitting * largest;   // no memory is given up, and each slot may still grow
    finished = std::min(finished, room);
    const std::uint64_t all = finished < 0x1p63 ? sum_of(largest_, static_cast<std::uint64_t>(finished)) : unlimited;
    return std::max({most_bytes_, largest_, std::min(all, most)});
}

// -------------------------------------------------------------------------------------------- completion and hand-over

/// Bytes may also be counted without a limit.
bool LoaderPolicy::has_budget() const noexcept { return budget_ != 0 && budget_ != unlimited; }

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
    for (std::uint64_t left = wanted(); left != 0; left &= left - 1) {
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
    if (places_[oldest].overtaken >= places_[oldest].rule.max_overtakes) {
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
        // All older batches are overtaken, not only the oldest: each may become the oldest later.
        for (std::uint64_t left = wanted(); left != 0; left &= left - 1) {
            Place& place = places_[static_cast<std::size_t>(std::countr_zero(left))];
            place.overtaken += place.batch < places_[slot].batch;
        }
    }
    complete_ &= ~bit(slot);
    handed_ |= bit(slot);
    if (budget_ != 0 && !places_[slot].failed)
        note_finished(places_[slot]);
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

void LoaderPolicy::reorder(OrderRule order) noexcept {
    next_rule_ = order;
    if (admitted_ == pass_begin_)
        rule_ = next_rule_;
}

void LoaderPolicy::rebudget(std::uint64_t batches_budget_bytes) noexcept {
    if (counts_bytes() && batches_budget_bytes != 0)
        budget_ = batches_budget_bytes;
}

void LoaderPolicy::observe(std::uint64_t samples, std::uint64_t ns) noexcept {
    if (samples == 0)
        return;
    const std::uint64_t measured = std::max<std::uint64_t>(ns * 256 / samples, 1);
    sample_ns_x256_ =
        sample_ns_x256_ == 0 ? measured : std::max<std::uint64_t>((sample_ns_x256_ * 7 + measured) / 8, 1);
}

std::uint32_t LoaderPolicy::claim_size() const noexcept {
    if (sample_ns_x256_ == 0 || has_budget())   // under a budget, claimed samples should soon hold their memory
        return 1;
    const std::size_t workers = std::max<std::size_t>(wanted_workers(), 1);
    const std::uint64_t share = (batch_size_ + workers - 1) / workers;
    const std::uint64_t most = std::max(share, least_claim_ns * 256 / sample_ns_x256_);
    const std::uint64_t wanted = std::min(target_claim_ns * 256 / sample_ns_x256_, most);
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1, batch_size_));
}

bool LoaderPolicy::claims_whole_batches() const noexcept {
    return sample_ns_x256_ != 0 && !has_budget() && sample_ns_x256_ * batch_size_ <= least_claim_ns * 256;
}

void LoaderPolicy::observe_use(const WorkerUse& use) noexcept {
    const double kept = std::pow(use_kept, static_cast<double>(use.claims));
    computed_ns_ = computed_ns_ * kept + static_cast<double>(use.computed_ns);
    queued_ns_ = queued_ns_ * kept + static_cast<double>(use.queued_ns);
    waited_ns_ = waited_ns_ * kept + static_cast<double>(use.waited_ns);
    uses_ += use.claims;
    const double waited = waited_ns_ / (computed_ns_ + waited_ns_), queued = queued_ns_ / (computed_ns_ + queued_ns_);
    if (only_compute_)
        only_compute_ = waited <= much_waiting;
    else
        only_compute_ = uses_ >= fewest_uses && waited <= little_waiting && queued >= some_queueing;
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
    return lacks_bytes_ || batch_ns > long_batch_ns ? 1 : std::max<std::size_t>((depth_ + 1) / 2, 1);
}

}   // namespace drawpoint
