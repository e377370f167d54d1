// PrefetchCore's functions for live control: changing limits while it runs, and counters.
#include <algorithm>
#include <utility>

#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/pipeline/cache/sample_cache.hpp>

#include "pipeline/loader/threads/prefetch_core.hpp"

namespace drawpoint {

LoaderOptions PrefetchCore::within(const MemoryPlan& plan, LoaderOptions options) noexcept {
    options.prefetch_depth = plan.prefetch_depth;
    options.read_concurrency = plan.read_concurrency;
    return options;
}

std::uint64_t PrefetchCore::reads_memory(const LoaderOptions& options, const MemoryPlan& plan) noexcept {
    return options.memory_budget == 0 ? 0 : plan.in_flight_bytes;
}

LiveLimits PrefetchCore::limits_asked() const noexcept {
    return {.num_workers = inline_ ? 0 : options_.num_workers,
            .prefetch_depth = options_.prefetch_depth,
            .read_concurrency = options_.read_concurrency,
            .sample_sets = memory_plan_.sample_sets,
            .batches_budget_bytes = memory_plan_.batches_budget_bytes,
            .reads_bytes = reads_memory(options_, memory_plan_),
            .worker_bytes = needs_.worker_bytes};
}

void PrefetchCore::reconfigure(const LoaderOptions& asked, const MemoryNeeds& needs, const MemoryPlan& plan) {
    if (stopping())
        return;
    check_process();
    const LoaderOptions next = within(plan, asked);
    if (next.order != OrderRule::in_order()) {
        may_overtake_ = true;
        note_progress();
    }
    prepare_slots(next.prefetch_depth + 1);
    if (reads_)
        reads_->prepare_slots(next.prefetch_depth + 1);
    if (started_ && !inline_)
        start_workers(next.num_workers);   // they rest until the limits are raised
    Wakes wakes;
    {
        const auto guard = guarded_.lock();
        asked_ = asked;
        options_ = next;
        needs_ = needs;
        memory_plan_ = plan;
        const bool holds_back = !inline_ && next.memory_budget != 0;
        const std::size_t surplus =
            guard->machine.decide<&LoaderMachine::reconfigure>(limits_asked(), next.order, holds_back, slots_bytes());
        follow_limits(*guard);
        if (inline_) {
            trim_slots(guard->machine.decide<&LoaderMachine::retire>());   // the next draw turns
        } else {
            wakes = turn(*guard, Asks{.loop_waits = true, .wakes_at_least = surplus});
            wakes += raise_limits_if_room(*guard);
        }
        note_setting(*guard);
    }
    follow_cores();
    perform(wakes);
}

void PrefetchCore::follow_cores() noexcept {
    const auto cores = static_cast<std::size_t>(affinity_cores());
    spin_.retarget(cores, options_.num_workers);
    worker_yields_.store(SpinPolicy::worker_yields(cores, options_.num_workers), std::memory_order_relaxed);
}

void PrefetchCore::follow_limits(Guard& guard) noexcept {
    const LiveLimits& limits = guard.machine->limits();
    sample_sets_ = limits.sample_sets;
    count_slots(limits.prefetch_depth + 1);
    if (asked_.slot_memory != nullptr)   // which slots have before they are opened
        guard.machine.decide<&LoaderMachine::holds_slots>(slots_bytes());
    if (reads_)
        reads_->retarget(limits.read_concurrency, limits.num_workers, limits.reads_bytes);
    measures_use_.store(guard.machine->policy().may_have_too_many(), std::memory_order_relaxed);
    board_.set_claim_size(guard.machine->policy().claim_size());
    waits_for_room_ = guard.machine->waits_for_room();
    recall_resting_workers(guard);
}

PrefetchCore::Wakes PrefetchCore::raise_limits_if_room(Guard& guard) noexcept {
    const std::uint64_t reads = reads_ && options_.memory_budget != 0 ? reads_->counters().bytes : 0;
    if (!guard.machine->waits_for_room() || !guard.machine->has_room(position_, reads))
        return {};
    guard.machine.decide<&LoaderMachine::raise_limits>(slots_bytes());
    follow_limits(guard);
    note_setting(guard);
    return turn(guard);
}

void PrefetchCore::retry_raise_at_draw() noexcept {
    Wakes wakes;
    {
        const auto guard = guarded_.lock();
        wakes = turn(*guard, Asks{.loop_waits = true});   // takes up all slots that are back
        wakes += raise_limits_if_room(*guard);
    }
    perform(wakes);
}

SettingRow PrefetchCore::setting(Guard& guard) const noexcept {
    const LiveLimits& limits = guard.machine->limits();
    const LoaderPolicy& policy = guard.machine->policy();
    return {.pipeline = pipeline_,
            .num_workers = static_cast<std::uint32_t>(limits.num_workers),
            .prefetch_depth = static_cast<std::uint32_t>(limits.prefetch_depth),
            .order = policy.order(),
            .read_concurrency = reads_ ? static_cast<std::uint32_t>(limits.read_concurrency) : 0u,
            .memory_budget = options_.memory_budget};
}

void PrefetchCore::note_setting(Guard& guard) noexcept {
    if (!recorder_)
        return;
    SettingRow now = setting(guard);
    now.at_ns = guard.noted.at_ns;
    if (now == guard.noted)
        return;
    now.at_ns = clock_.now_ns();
    recorder_->add_setting(now);
    guard.noted = now;
}

LoaderCounters PrefetchCore::counters() noexcept {
    if (lacks_threads())
        return {};
    const ReadAheadCounters reads = reads_ ? reads_->counters() : ReadAheadCounters{};
    const auto guard = guarded_.lock();
    const LoaderMachine& machine = *guard->machine.operator->();
    const LoaderPolicy& policy = machine.policy();
    const bool seen = samples_taken_ != 0;
    const std::uint64_t cached = cache_ != nullptr ? cache_->counters().bytes : 0;
    const std::uint64_t always = memory_plan_.order_bytes + cached;
    const std::uint64_t slots =
        policy.counts_bytes() && seen
            ? std::max(policy.expected_batches_bytes(machine.largest_rest_bytes() * slot_count_ +
                                                     machine.largest_samples_bytes() * sample_sets_),
                       machine.most_slots_bytes())
            : memory_plan_.slots_bytes;
    const std::uint64_t largest = policy.counts_bytes() ? policy.largest_batch_bytes()
                                  : seen                ? memory_plan_.slot_bytes
                                                        : 0;
    return {.batches_taken = batches_taken_,
            .batches_abandoned = batches_abandoned_,
            .samples_taken = samples_taken_,
            .slots_replaced = slots_replaced(),
            .samples_skipped = options_.on_error == OnError::skip ? samples_settled_ : 0,
            .samples_substituted = options_.on_error == OnError::substitute ? samples_settled_ : 0,
            .suspensions = suspensions_,
            .worker_wakes = guard->wakes + user_wakes_.load(std::memory_order_relaxed),
            .worker_parks = guard->parks,
            .turns = guard->turns,
            .handler_fallbacks = wake_buffer_.fallbacks(),
            .slots_bytes = slots_bytes(),
            .workers_running = machine.running(),
            .reads_ahead = reads.ahead,
            .read_retries = reads.retries,
            .reads_late = reads.late,
            .read_bytes = reads.bytes,
            .largest_batch_bytes = largest,
            .peak_bytes = always + machine.peak_bytes() + reads.most_bytes,
            .expected_bytes =
                always + memory_plan_.workers_bytes + slots + (seen ? reads.most_bytes : memory_plan_.in_flight_bytes),
            .last_offered_ns = last_offered_ns_};
}

}   // namespace drawpoint
