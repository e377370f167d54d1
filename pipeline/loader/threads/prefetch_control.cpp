// PrefetchCore's part for live control: other numbers while it runs, and the threads that they take.
#include <algorithm>
#include <bit>
#include <utility>

#include <drawpoint/instrumentation/host/host.hpp>

#include "pipeline/loader/threads/prefetch_core.hpp"

namespace drawpoint {

namespace {

std::uint64_t first_slots(std::size_t count) noexcept { return (std::uint64_t{1} << count) - 1; }

}   // namespace

LoaderOptions PrefetchCore::within(const MemoryPlan& plan, LoaderOptions options) noexcept {
    options.prefetch_depth = plan.prefetch_depth;
    options.read_concurrency = plan.read_concurrency;
    return options;
}

std::uint64_t PrefetchCore::reads_memory(const LoaderOptions& options, const MemoryPlan& plan) noexcept {
    return options.memory_budget == 0 ? 0 : plan.in_flight_bytes;
}

std::int64_t PrefetchCore::most_spin_ns(std::size_t num_workers) noexcept {
    return static_cast<std::size_t>(affinity_cores()) > num_workers ? long_spin_ns : spin_ns;
}

void PrefetchCore::reconfigure(const LoaderOptions& asked, const MemoryNeeds& needs, const MemoryPlan& plan) {
    if (stopping())
        return;
    const LoaderOptions next = within(plan, asked);
    prepare_slots(next.prefetch_depth + 1);
    if (reads_)
        reads_->prepare_slots(next.prefetch_depth + 1);
    if (started_ && !inline_)
        start_workers(next.num_workers);   // they go to the bench until the numbers say otherwise
    Wakes wakes;
    {
        const std::lock_guard lock{mutex_};
        asked_ = asked;
        options_ = next;
        needs_ = needs;
        memory_plan_ = plan;
        policy_.reorder(next.order);
        const Numbers all = numbers();
        if (!waits_for_room_)
            settled_at_ = policy_.next_position() + static_cast<std::uint64_t>(std::popcount(policy_.wanted()));
        // Under a budget, what there is to be more of waits until there is less of the rest.
        hold_to(inline_ || next.memory_budget == 0 ? all : least(held_to_, all));
        if (inline_) {
            retire_slots();   // the draw takes its turn itself
        } else {
            const std::size_t begun = policy_.begun(), left = policy_.wanted_workers();
            wakes =
                turn(Asks{.loop_waits = true, .wakes = std::min(begun > left ? begun - left : 0, policy_.parked())});
            wakes += go_on();
        }
        note_setting();
    }
    most_spin_ns_ = most_spin_ns(next.num_workers);
    spin_ns_ = std::min(spin_ns_, most_spin_ns_);
    wakes.prepare_next = false;   // a worker's: one saw it, too
    perform(wakes);
}

PrefetchCore::Numbers PrefetchCore::numbers() const noexcept {
    return {.num_workers = inline_ ? 0 : options_.num_workers,
            .prefetch_depth = options_.prefetch_depth,
            .read_concurrency = options_.read_concurrency,
            .sample_sets = memory_plan_.sample_sets,
            .batches_budget_bytes = memory_plan_.batches_budget_bytes,
            .reads_bytes = reads_memory(options_, memory_plan_)};
}

PrefetchCore::Numbers PrefetchCore::least(const Numbers& a, const Numbers& b) noexcept {
    return {.num_workers = std::min(a.num_workers, b.num_workers),
            .prefetch_depth = std::min(a.prefetch_depth, b.prefetch_depth),
            .read_concurrency = std::min(a.read_concurrency, b.read_concurrency),
            .sample_sets = std::min(a.sample_sets, b.sample_sets),
            .batches_budget_bytes = std::min(a.batches_budget_bytes, b.batches_budget_bytes),
            .reads_bytes = a.reads_bytes == 0 ? b.reads_bytes : std::min(a.reads_bytes, b.reads_bytes)};
}

void PrefetchCore::hold_to(const Numbers& numbers) noexcept {
    held_to_ = numbers;
    // Workers and slots at their most need not have been there at one time.
    past_peak_bytes_ = std::max(past_peak_bytes_, most_workers_bytes_ + most_slots_bytes_);
    most_workers_bytes_ = needs_.worker_bytes * std::max(policy_.begun() + leaving_, numbers.num_workers);
    most_slots_bytes_ = policy_.counts_bytes() ? policy_.batches_bytes() : slots_bytes();
    sample_sets_ = numbers.sample_sets;
    count_slots(numbers.prefetch_depth + 1);
    retiring_ = first_slots(slot_count_) & ~first_slots(numbers.prefetch_depth + 1);
    if (reads_)
        reads_->retarget(numbers.read_concurrency, numbers.num_workers, numbers.reads_bytes);
    policy_.retarget(numbers.num_workers, numbers.prefetch_depth);
    policy_.rebudget(numbers.batches_budget_bytes);
    measures_use_.store(policy_.may_have_too_many(), std::memory_order_relaxed);
    claim_size_.store(policy_.claim_size(), std::memory_order_relaxed);
    waits_for_room_ = numbers != this->numbers();
    count_workers();
}

bool PrefetchCore::has_room() const noexcept {
    if (policy_.begun() + leaving_ > options_.num_workers)
        return false;
    if (!policy_.counts_bytes() && (retiring_ & ~first_slots(options_.prefetch_depth + 1)) != 0)
        return false;
    const std::uint64_t reads = reads_ && options_.memory_budget != 0 ? reads_->counters().bytes : 0;
    return position_ > settled_at_ ||   // one batch may take more than all
           (reads <= memory_plan_.in_flight_bytes &&
            (!policy_.counts_bytes() || policy_.batches_bytes() <= memory_plan_.batches_budget_bytes));
}

PrefetchCore::Wakes PrefetchCore::go_on() noexcept {
    if (!waits_for_room_ || !has_room())
        return {};
    hold_to(numbers());
    note_setting();
    return turn();
}

void PrefetchCore::look_for_room() noexcept {
    Wakes wakes;
    {
        const std::lock_guard lock{mutex_};
        wakes = turn(Asks{.loop_waits = true});   // takes up all that is back
        wakes += go_on();
    }
    wakes.prepare_next = false;
    perform(wakes);
}

void PrefetchCore::extend() noexcept {
    policy_.extend(batches_per_epoch_);
    note_setting();   // a pass may have an order of its own
}

SettingRow PrefetchCore::setting() const noexcept {
    return {.pipeline = pipeline_,
            .num_workers = static_cast<std::uint32_t>(held_to_.num_workers),
            .prefetch_depth = static_cast<std::uint32_t>(held_to_.prefetch_depth),
            .max_overtakes = policy_.order().max_overtakes,
            .read_concurrency = reads_ ? static_cast<std::uint32_t>(held_to_.read_concurrency) : 0u,
            .memory_budget = options_.memory_budget};
}

void PrefetchCore::note_setting() noexcept {
    if (!recorder_)
        return;
    SettingRow now = setting();
    now.at_ns = noted_.at_ns;
    if (now == noted_)
        return;
    now.at_ns = clock_.now_ns();
    recorder_->add_setting(now);
    noted_ = now;
}

void PrefetchCore::retire_slots() noexcept {
    for (std::uint64_t left = retiring_ & ~(policy_.in_flight() | policy_.handed()); left != 0; left &= left - 1) {
        const auto i = static_cast<std::uint32_t>(std::countr_zero(left));
        trim(i);
        if (policy_.counts_bytes())
            policy_.holds(i, 0);
        retiring_ &= ~(std::uint64_t{1} << i);
    }
}

// ---------------------------------------------------------------------------------------------- workers

void PrefetchCore::start_crew() {
    if (!inline_) {
        start_workers(options_.num_workers);
        if (!crews_.empty()) {
            started_ = true;
            return;
        }
        inline_ = true;   // only now that no worker reads it
    }
    inline_worker_ = maker_.make_worker();
    const std::lock_guard lock{mutex_};
    policy_.retarget(0, options_.prefetch_depth);
    measures_use_.store(false, std::memory_order_relaxed);
    next_wanted_ = false;
    started_ = true;
}

void PrefetchCore::start_workers(std::size_t num_workers) {
    std::size_t there = 0;
    for (const Crew& crew : crews_)
        there += crew.size();
    if (num_workers <= there)
        return;
    crews_.reserve(crews_.size() + 1);   // a crew that has begun is kept
    Crew crew = pool_->start(num_workers - there, *this);
    if (crew.size() != 0)
        crews_.push_back(std::move(crew));
}

void PrefetchCore::count_workers() noexcept {
    std::uint32_t back = 0;
    const std::size_t wanted = policy_.wanted_workers();
    for (; benched_ != 0 && policy_.begun() + leaving_ < wanted; --benched_, ++back)
        policy_.begin();
    too_many_.store(policy_.begun() > wanted, std::memory_order_relaxed);
    wakes_ += back;
    if (back != 0) {
        bench_tokens_.fetch_add(back, std::memory_order_release);
        bench_tokens_.notify_all();
    }
}

void PrefetchCore::arrive() noexcept {
    {
        const std::lock_guard lock{mutex_};
        if (policy_.begun() + leaving_ < policy_.wanted_workers())
            return policy_.begin();
        ++benched_;
        ++parks_;
    }
    wait_for_token(bench_tokens_);
}

bool PrefetchCore::leave(SampleWorker& worker) noexcept {
    Wakes wakes;
    {
        const std::lock_guard lock{mutex_};
        observe(worker);
        if (policy_.begun() <= policy_.wanted_workers())
            return !stopping();   // others have left
        policy_.end();
        ++leaving_;
        count_workers();
        wakes = turn(Asks{.leaves = true});
    }
    perform(wakes);
    worker.scratch.reset();   // what it holds belongs to nobody's plan while it sleeps
    std::vector<std::byte>{}.swap(worker.reads.own);
    {
        const std::lock_guard lock{mutex_};
        --leaving_;
        ++benched_;
        ++parks_;
        count_workers();
    }
    wait_for_token(bench_tokens_);
    return !stopping();
}

}   // namespace drawpoint
