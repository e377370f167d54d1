#include <drawpoint/pipeline/loader/machine/detail/loader_machine.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace drawpoint {

namespace {

std::uint64_t first_slots(std::size_t count) noexcept { return (std::uint64_t{1} << count) - 1; }

template <class Visit>
void for_each_slot(std::uint64_t slots, Visit visit) {
    for (; slots != 0; slots &= slots - 1)
        visit(static_cast<std::uint32_t>(std::countr_zero(slots)));
}

}   // namespace

LiveLimits least(const LiveLimits& a, const LiveLimits& b) noexcept {
    return {.num_workers = std::min(a.num_workers, b.num_workers),
            .prefetch_depth = std::min(a.prefetch_depth, b.prefetch_depth),
            .read_concurrency = std::min(a.read_concurrency, b.read_concurrency),
            .sample_sets = std::min(a.sample_sets, b.sample_sets),
            .batches_budget_bytes = std::min(a.batches_budget_bytes, b.batches_budget_bytes),
            .reads_bytes = a.reads_bytes == 0 ? b.reads_bytes : std::min(a.reads_bytes, b.reads_bytes),
            .worker_bytes = b.worker_bytes};
}

LoaderMachine::LoaderMachine(const PolicyOptions& options, const LiveLimits& asked) noexcept
    : policy_{options},
      batch_size_{options.batch_size},
      asked_{asked},
      limits_{asked},
      slots_used_{asked.prefetch_depth + 1},
      most_workers_bytes_{asked.worker_bytes * asked.num_workers} {}

// ---------------------------------------------------------------------------------------------- turns

const LoaderMachine::Effects& LoaderMachine::turn(const Seen& seen) noexcept {
    effects_.open.clear();
    effects_.hand_over.clear();
    if (seen.gate == Gate::fired)
        policy_.woken(1);   // the give-back that made the gate fire has woken one
    for_each_slot(seen.given_back, [this](std::uint32_t slot) { policy_.release(slot); });
    effects_.trim = retiring_ != 0 ? retire() : 0;
    if (policy_.counts_bytes())
        count_but(effects_.trim, *seen.held);
    admit(seen);
    while (const auto batch = policy_.hand_over())
        effects_.hand_over.push_back(*batch);
    effects_.begin_next = next_ == Next::ordered && policy_.admitted() == policy_.limit() && !policy_.stopped();
    return effects_;
}

inline void LoaderMachine::admit(const Seen& seen) noexcept {
    const bool counts = policy_.counts_bytes();
    std::uint64_t samples = 0;
    while (const auto admission = policy_.admit(seen.drawn, counts ? seen.unclaimed + effects_.open.size() : 0)) {
        if (counts)
            effects_.trim |= policy_.trims();
        const std::uint32_t size = next_size();
        effects_.open.push_back({admission->batch, admission->slot, size});
        samples += size;
    }
    if (counts)
        effects_.trim |= policy_.trims();
    wake(seen, samples);
}

inline void LoaderMachine::wake(const Seen& seen, std::uint64_t samples) noexcept {
    const bool work_is_open = seen.unclaimed + effects_.open.size() != 0;
    effects_.wake = policy_.wake(samples);
    // The workers awake may be busy with samples of an abandoned batch.
    const std::size_t at_least =
        std::max<std::size_t>(seen.wakes_at_least, (seen.loop_waits || seen.leaves) && work_is_open);
    if (effects_.wake < at_least) {
        const std::size_t more = std::min(at_least - effects_.wake, policy_.parked());
        policy_.woken(more);
        effects_.wake += more;
    }
    effects_.disarm = seen.gate == Gate::counting && policy_.parked() == 0;
    effects_.arm.reset();
    if (const std::size_t threshold = policy_.wake_threshold();
        policy_.parked() != 0 && (seen.gate != Gate::counting || seen.left > threshold))
        effects_.arm = threshold;
    // Batches come first, up to the middle of the pass: the worker that claims the last sample turns again.
    effects_.prepare_order = next_ == Next::wanted && !is_preparing_ && !seen.loop_waits && !policy_.stopped() &&
                             (!work_is_open || policy_.admitted() >= half_);
}

void LoaderMachine::count(const HeldBytes& held) noexcept { count_but(0, held); }

inline void LoaderMachine::count_but(std::uint64_t retired, const HeldBytes& held) noexcept {
    for (const bool grown : {false, true})   // shrunk ones first, or buffers that changed slots would count twice
        for (std::uint32_t slot = 0; slot < slots_used_; ++slot) {
            if ((retired >> slot & 1) != 0)
                continue;
            const SlotBytes& bytes = held[slot];
            if ((bytes.all >= policy_.bytes_of(slot)) == grown)
                policy_.holds(slot, bytes.all, bytes.passing);
            largest_samples_bytes_ = std::max(largest_samples_bytes_, bytes.passing);
            largest_rest_bytes_ = std::max(largest_rest_bytes_, bytes.all - bytes.passing);
        }
    most_slots_bytes_ = std::max(most_slots_bytes_, policy_.batches_bytes());
}

// ---------------------------------------------------------------------------------------------- passes

void LoaderMachine::extend(const PassShape& pass) noexcept {
    if (policy_.admitted() == policy_.limit()) {
        samples_left_ = 0;
        first_size_ = pass.first_size;
    }
    samples_left_ += pass.samples;
    half_ = policy_.limit() + pass.batches / 2;
    policy_.extend(pass.batches);
}

std::uint32_t LoaderMachine::next_size() noexcept {
    const std::uint64_t usual = first_size_ != 0 ? std::exchange(first_size_, 0) : batch_size_;
    const std::uint64_t size = std::min<std::uint64_t>(usual, samples_left_);
    samples_left_ -= size;
    return static_cast<std::uint32_t>(size);
}

bool LoaderMachine::begin_pass(std::uint64_t epoch) noexcept {
    return epoch_ == epoch && std::exchange(next_has_begun_, false);
}

std::optional<std::uint64_t> LoaderMachine::begin_preparing() noexcept {
    if (next_ != Next::wanted || is_preparing_ || policy_.stopped())
        return std::nullopt;
    is_preparing_ = true;
    next_ = Next::being_ordered;
    return epoch_ + 1;
}

bool LoaderMachine::prepared(bool made) noexcept {
    is_preparing_ = false;
    if (next_ != Next::being_ordered)
        return false;   // the pass before was abandoned
    next_ = made && !policy_.stopped() ? Next::ordered : Next::unwanted;
    return next_ == Next::ordered;
}

void LoaderMachine::begin_next() noexcept {
    next_ = Next::unwanted;
    next_has_begun_ = true;
    ++epoch_;
}

LoaderPolicy::Abandoned LoaderMachine::abandon(std::uint64_t undrawn) noexcept {
    for_each_slot(undrawn, [this](std::uint32_t slot) { policy_.release(slot); });
    next_ = Next::unwanted;
    next_has_begun_ = false;
    return policy_.abandon();
}

// ---------------------------------------------------------------------------------------------- workers

bool LoaderMachine::observe(std::uint64_t samples, std::uint64_t ns, const WorkerUse& use) noexcept {
    policy_.observe(samples, ns);
    if (use.claims == 0)
        return false;
    policy_.observe_use(use);
    return true;
}

bool LoaderMachine::sleeps(bool work_is_open) noexcept {
    if (work_is_open || effects_.prepare_order || too_many())
        return false;
    policy_.park();
    return true;
}

bool LoaderMachine::arrives() noexcept {
    const bool is_wanted = policy_.begun() + leaving_ < policy_.wanted_workers();
    if (is_wanted)
        policy_.begin();
    else
        ++resting_;
    return is_wanted;
}

bool LoaderMachine::leaves() noexcept {
    if (!too_many())
        return false;   // other workers have left
    policy_.end();
    ++leaving_;
    return true;
}

void LoaderMachine::rests() noexcept {
    --leaving_;
    ++resting_;
}

std::size_t LoaderMachine::recall() noexcept {
    std::size_t back = 0;
    for (; resting_ != 0 && policy_.begun() + leaving_ < policy_.wanted_workers(); --resting_, ++back)
        policy_.begin();
    return back;
}

std::size_t LoaderMachine::running() const noexcept {
    return policy_.begun() + std::min(resting_ + leaving_, limits_.num_workers - policy_.wanted_workers());
}

// ---------------------------------------------------------------------------------------------- limits

std::size_t LoaderMachine::reconfigure(const LiveLimits& asked, OrderRule order, bool holds_back,
                                       std::uint64_t slots_bytes) noexcept {
    policy_.reorder(order);
    if (!waits_for_room())
        settled_at_ = policy_.next_position() + static_cast<std::uint64_t>(std::popcount(policy_.wanted()));
    asked_ = asked;
    apply(holds_back ? least(limits_, asked) : asked, slots_bytes);
    const std::size_t begun = policy_.begun(), wanted = policy_.wanted_workers();
    return std::min(begun > wanted ? begun - wanted : 0, policy_.parked());
}

void LoaderMachine::apply(const LiveLimits& limits, std::uint64_t slots_bytes) noexcept {
    limits_ = limits;
    // The maxima of workers and slots need not have occurred at the same time.
    past_peak_bytes_ = peak_bytes();
    most_workers_bytes_ = limits.worker_bytes * std::max(policy_.begun() + leaving_, limits.num_workers);
    most_slots_bytes_ = policy_.counts_bytes() ? policy_.batches_bytes() : slots_bytes;
    slots_used_ = std::max(slots_used_, limits.prefetch_depth + 1);
    retiring_ = first_slots(slots_used_) & ~first_slots(limits.prefetch_depth + 1);
    policy_.retarget(limits.num_workers, limits.prefetch_depth);
    policy_.rebudget(limits.batches_budget_bytes);
}

bool LoaderMachine::has_room(std::uint64_t drawn, std::uint64_t reads_bytes) const noexcept {
    if (policy_.begun() + leaving_ > asked_.num_workers)
        return false;
    if (!policy_.counts_bytes() && (retiring_ & ~first_slots(asked_.prefetch_depth + 1)) != 0)
        return false;
    const bool reads_fit = asked_.reads_bytes == 0 || reads_bytes <= asked_.reads_bytes;
    return drawn > settled_at_ ||   // a single batch may exceed the budget, so bytes alone must not decide
           (reads_fit && (!policy_.counts_bytes() || policy_.batches_bytes() <= asked_.batches_budget_bytes));
}

void LoaderMachine::work_inline() noexcept {
    asked_.num_workers = limits_.num_workers = 0;
    policy_.retarget(0, limits_.prefetch_depth);
    next_ = Next::unwanted;
}

std::uint64_t LoaderMachine::retire() noexcept {
    const std::uint64_t free = retiring_ & ~(policy_.in_flight() | policy_.handed());
    retiring_ &= ~free;
    if (policy_.counts_bytes())
        for_each_slot(free, [this](std::uint32_t slot) { policy_.holds(slot, 0); });
    return free;
}

bool LoaderMachine::holds_all(std::uint64_t drawn) const noexcept {
    // After the depth has shrunk, the user may hold more than slots() while other batches are still to come.
    return policy_.next_position() == drawn && policy_.wanted() == 0 &&
           static_cast<std::size_t>(std::popcount(policy_.handed())) >= policy_.slots();
}

std::uint64_t LoaderMachine::peak_bytes() const noexcept {
    return std::max(past_peak_bytes_, most_workers_bytes_ + most_slots_bytes_);
}

}   // namespace drawpoint
