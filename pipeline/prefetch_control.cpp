// PrefetchCore's part for live control: other numbers while it runs, and the threads that they take.
#include <algorithm>
#include <utility>

#include <drawpoint/instrumentation/host.hpp>

#include "pipeline/prefetch_core.hpp"

namespace drawpoint {

namespace {

std::uint64_t first_slots(std::size_t count) noexcept { return (std::uint64_t{1} << count) - 1; }

}   // namespace

std::uint32_t PrefetchCore::overtakes_of(BatchOrder order, std::size_t max_overtakes) noexcept {
    switch (order) {
    case BatchOrder::in_order: return 0;
    case BatchOrder::out_of_order: return any_order;
    case BatchOrder::bounded: break;
    }
    return static_cast<std::uint32_t>(max_overtakes);
}

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
    const std::size_t slots = next.prefetch_depth + 1;
    prepare_slots(slots);
    if (reads_)
        reads_->prepare_slots(slots);
    if (started_ && !inline_)
        start_workers(next.num_workers);   // they go to the bench until the numbers say otherwise
    if (reads_)
        reads_->retarget(next.read_concurrency, next.num_workers, reads_memory(next, plan));
    Wakes wakes;
    std::uint32_t back = 0;
    {
        const std::lock_guard lock{mutex_};
        asked_ = asked;
        options_ = next;
        needs_ = needs;
        memory_plan_ = plan;
        // Workers and slots at their most need not have been there at one time.
        past_peak_bytes_ = std::max(past_peak_bytes_, most_workers_bytes_ + most_slots_bytes_);
        most_workers_bytes_ = plan.workers_bytes;
        most_slots_bytes_ = policy_.counts_bytes() ? policy_.batches_bytes() : slots_bytes();
        sample_sets_ = plan.sample_sets;
        count_slots(slots);
        retiring_ = first_slots(slot_count_) & ~first_slots(slots);
        policy_.retarget(inline_ ? 0 : next.num_workers, next.prefetch_depth);
        policy_.reorder(next.order, next.max_overtakes);
        policy_.rebudget(plan.batches_budget_bytes);
        claim_size_.store(policy_.claim_size(), std::memory_order_relaxed);
        note_setting();
        back = count_workers();
        const std::size_t begun = policy_.begun();
        const std::size_t leaving = begun > next.num_workers ? begun - next.num_workers : 0;
        if (inline_)
            retire_slots();   // the draw takes its turn itself
        else
            wakes = turn(Asks{.loop_waits = true, .wakes = std::min(leaving, policy_.parked())});
    }
    most_spin_ns_ = most_spin_ns(next.num_workers);
    spin_ns_ = std::min(spin_ns_, most_spin_ns_);
    wakes.prepare_next = false;   // a worker's: one saw it, too
    perform(wakes);
    bench_tokens_.fetch_add(back, std::memory_order_release);
    bench_tokens_.notify_all();
}

void PrefetchCore::extend() noexcept {
    policy_.extend(batches_per_epoch_);
    note_setting();   // a pass may have an order of its own
}

SettingRow PrefetchCore::setting() const noexcept {
    return {.pipeline = pipeline_,
            .num_workers = static_cast<std::uint32_t>(options_.num_workers),
            .prefetch_depth = static_cast<std::uint32_t>(options_.prefetch_depth),
            .max_overtakes = overtakes_of(policy_.order(), policy_.max_overtakes()),
            .read_concurrency = reads_ ? static_cast<std::uint32_t>(options_.read_concurrency) : 0u,
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

std::uint32_t PrefetchCore::count_workers() noexcept {
    std::uint32_t back = 0;
    for (; benched_ != 0 && policy_.begun() < options_.num_workers; --benched_, ++back)
        policy_.begin();
    too_many_.store(policy_.begun() > options_.num_workers, std::memory_order_relaxed);
    return back;
}

void PrefetchCore::arrive() noexcept {
    {
        const std::lock_guard lock{mutex_};
        if (policy_.begun() < options_.num_workers)
            return policy_.begin();
        ++benched_;
    }
    wait_for_token(bench_tokens_);
}

bool PrefetchCore::leave(SampleWorker& worker) noexcept {
    Wakes wakes;
    {
        const std::lock_guard lock{mutex_};
        observe(worker);
        if (policy_.begun() <= options_.num_workers)
            return !stopping();   // others have left
        policy_.end();
        ++benched_;
        (void)count_workers();
        wakes = turn(Asks{.leaves = true});
    }
    perform(wakes);
    worker.scratch.reset();   // what it holds belongs to nobody's plan while it sleeps
    std::vector<std::byte>{}.swap(worker.reads.own);
    wait_for_token(bench_tokens_);
    return !stopping();
}

}   // namespace drawpoint
