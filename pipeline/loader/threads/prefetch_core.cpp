#include "pipeline/loader/threads/prefetch_core.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/host/host.hpp>

namespace drawpoint {
namespace {

bool reads_ahead(const SampleSource& source, const LoaderOptions& options) {
    return source.reads() != nullptr && !(source.fills_runs() && options.collate == nullptr);
}

std::uint16_t add_pipeline(Recorder* recorder, const SampleSource& source, const LoaderOptions& options,
                           std::string_view name) {
    std::vector<std::string> stages = source.stages();
    if (stages.empty() || stages.size() > max_stages)
        throw std::invalid_argument{"a sample source must have 1 to " + std::to_string(max_stages) + " stages, got " +
                                    std::to_string(stages.size())};
    if (!recorder)
        return 0;
    LoaderSetting setting = options.setting();
    if (!reads_ahead(source, options))
        setting.read_concurrency = 0;
    return recorder->add_pipeline(pipeline_row(std::string{name}, std::move(stages), setting));
}

std::unique_ptr<ReadAhead> reads_of(const SampleSource& source, const LoaderOptions& options,
                                    const LoaderOptions& asked, std::size_t batch_size, std::uint64_t memory,
                                    bool measures, const AnyClock& clock) {
    if (!reads_ahead(source, options))
        return nullptr;
    return std::make_unique<ReadAhead>(
        source, *source.reads(),
        ReadAheadOptions{.concurrency = options.read_concurrency,
                         .most_concurrency = asked.read_concurrency,
                         .num_workers = options.num_workers,
                         .batch_size = batch_size,
                         .slots = options.prefetch_depth + 1,
                         .rules = {.deadline = options.read_deadline, .retries = options.read_retries},
                         .memory = memory,
                         .measures = measures},
        clock);
}

}   // namespace

PrefetchCore::PrefetchCore(Runtime& runtime, const SampleSource& source, const Sampler& sampler,
                           const LoaderOptions& asked, const MemoryNeeds& needs, const MemoryPlan& plan,
                           std::string_view name)
    : LoaderCore{source.layout(),          plan.slot_samples,       plan.prefetch_depth + 1,
                 asked.collate != nullptr, LoaderPolicy::max_slots, asked.slot_memory},
      context_{&runtime.context()},
      pool_{&runtime.workers()},
      on_worker_start_{runtime.options().on_worker_start},
      sampler_{&sampler},
      parts_{sampler.parts()},
      max_threads_{runtime.options().max_threads},
      asked_{asked},
      options_{within(plan, asked)},
      needs_{needs},
      memory_plan_{plan},
      cache_{plan.cache_bytes != 0 ? source.cache() : nullptr},
      order_size_{sampler.size()},
      batches_per_epoch_{asked.drop_last ? std::max<std::size_t>(order_size_ / asked.batch_size, order_size_ > 0)
                                         : order_size_ / asked.batch_size + (order_size_ % asked.batch_size != 0)},
      recorder_{runtime.options().record ? &runtime.recorder() : nullptr},
      clock_{runtime.recorder().clock()},
      pipeline_{add_pipeline(recorder_, source, options_, name)},
      reads_{reads_of(source, options_, asked, plan.slot_samples, reads_memory(options_, plan), recorder_ != nullptr,
                      clock_)},
      maker_{source, reads_.get(), recorder_, clock_, pipeline_, asked},
      watch_{asked.stall_timeout.count() == 0
                 ? nullptr
                 : std::make_unique<StallWatch>(asked.stall_timeout, asked.on_stall,
                                                recorder_ ? recorder_->pipeline_name(pipeline_) : std::string{name},
                                                source)},
      most_errors_{asked.max_errors.value_or(std::max<std::size_t>(10, order_size_ / 1000))},
      inline_{options_.num_workers == 0},
      guarded_{PolicyOptions{.batch_size = plan.slot_samples,
                             .num_workers = options_.num_workers,
                             .prefetch_depth = options_.prefetch_depth,
                             .order = options_.order,
                             .batches_budget_bytes = plan.batches_budget_bytes,
                             .batch_bytes_hint = asked.collate != nullptr ? plan.slot_bytes : 0,
                             .cores = static_cast<std::size_t>(std::ceil(usable_cores()))},
               limits_asked(), parts_ ? 0 : order_size_},
      may_overtake_{options_.order != OrderRule::in_order()} {
    follow_cores();
    if (recorder_ && asked.prefetch_depth != options_.prefetch_depth)
        recorder_->set_fact(std::string{facts::asked_depth_prefix} + recorder_->pipeline_name(pipeline_),
                            std::to_string(asked.prefetch_depth));
    if (recorder_)
        recorder_->set_fact(std::string{facts::batches_prefix} + recorder_->pipeline_name(pipeline_),
                            std::to_string(batches_per_epoch_));
    if (recorder_ && asked.on_error != OnError::raise)
        recorder_->set_fact(std::string{facts::on_error_prefix} + recorder_->pipeline_name(pipeline_),
                            name_of(asked.on_error));
    const auto guard = guarded_.lock();
    sample_sets_ = plan.sample_sets;
    measures_use_.store(guard->machine->policy().may_have_too_many(), std::memory_order_relaxed);
    guard->noted = setting(*guard);
    if (asked.slot_memory != nullptr)
        guard->machine.decide<&LoaderMachine::holds_slots>(slots_bytes());
    registry_ = asio::use_service<ParkedDraws>(*context_).registry();
    registry_->add(this);
}

PrefetchCore::~PrefetchCore() {
    registry_->remove(this);
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

// ---------------------------------------------------------------------------------------------- turns

PrefetchCore::Wakes PrefetchCore::turn(Guard& guard, const Asks& asks) noexcept {
    Wakes wakes;
    ++guard.turns;
    const LoaderMachine::Effects* effects;
    do {
        effects = &guard.machine.turn(look(guard, asks));
        carry_out(guard, *effects, wakes);
        if (effects->disarm && gate_.disarm())
            --wakes.workers;   // a give-back has made the gate fire and woken one of these workers
    } while (effects->arm && !gate_.arm(*effects->arm));
    guard.wakes += wakes.workers;
    wakes.prepare_next = effects->prepare_order;
    if (effects->begin_next) {
        begin_next(guard);
        wakes += turn(guard, Asks{.loop_waits = asks.loop_waits, .leaves = asks.leaves});
    }
    return wakes;
}

LoaderMachine::Seen PrefetchCore::look(Guard& guard, const Asks& asks) noexcept {
    LoaderMachine::Seen seen{.drawn = inline_ || asks.loop_waits ? position_ : 0,
                             .unclaimed = board_.unclaimed(),
                             .loop_waits = asks.loop_waits,
                             .leaves = asks.leaves,
                             .wakes_at_least = asks.wakes_at_least};
    if (guard.machine->takes_up(asks.loop_waits, gate_.is_armed(), seen.unclaimed != 0)) {
        const GiveBackGate::TakenUp taken = gate_.take_up(guard.machine->policy().wake_threshold());
        seen.given_back = taken.slots;
        seen.gate = taken.state;
        seen.left = taken.left;
    }
    if (guard.machine->policy().counts_bytes())
        seen.held = &held_bytes_of_all(guard);
    return seen;
}

const LoaderMachine::HeldBytes& PrefetchCore::held_bytes_of_all(Guard& guard) const noexcept {
    for (std::uint32_t slot = 0; slot < slot_count_; ++slot) {
        const std::uint64_t samples = samples_bytes(slot);
        guard.held[slot] = {.all = held_bytes(slot, samples), .passing = samples};
    }
    return guard.held;
}

void PrefetchCore::carry_out(Guard& guard, const LoaderMachine::Effects& effects, Wakes& wakes) noexcept {
    trim_slots(effects.trim);
    for (const LoaderMachine::Open& batch : effects.open)
        open(guard, batch, wakes);
    for (const LoaderPolicy::HandOver& batch : effects.hand_over)
        wakes.loop |= publish(batch.position, {batch.failed ? DrawMailbox::Kind::failed : DrawMailbox::Kind::batch,
                                               batch.slot, slots_[batch.slot].size});
    wakes.workers += effects.wake;
}

// Under the mutex, because this memory must be freed before batches admitted in its place are made. It costs little:
// returning pages takes a sixth to a twentieth of the time of getting them, and sizes that settle are not trimmed.
void PrefetchCore::trim_slots(std::uint64_t slots) noexcept {
    for (; slots != 0; slots &= slots - 1)
        if (const auto slot = static_cast<std::uint32_t>(std::countr_zero(slots));
            slots_[slot].memory == nullptr || !slots_[slot].memory->is_from_allocator())   // else it frees nothing
            trim(slot);
}

void PrefetchCore::open(Guard& guard, const LoaderMachine::Open& batch, Wakes& wakes) noexcept {
    Slot& s = slots_[batch.slot];
    const std::uint64_t nth = batch.batch - guard.first_batch, again = guard.undrawn.size();
    const std::uint64_t number = nth < again ? guard.undrawn[nth] : guard.first_number + (nth - again);
    if (reads_)
        reads_->withdraw(batch.slot, 0);   // before the indices change
    s.epoch = guard.machine->epoch();
    s.number = static_cast<std::uint32_t>(number);
    s.size = batch.size;
    if (!parts_)
        std::copy_n(guard.order.begin() + static_cast<std::ptrdiff_t>(number * batch_size_), s.size, s.indices.get());
    else if (reads_)   // else whoever claims samples computes their indices
        fill_indices(s, 0, s.size);
    if (s.failed) {
        s.failures.clear();
        s.failed = s.lost_failures = false;
    }
    if (s.collation)
        s.collation->begin();
    if (recorder_) {
        s.offered_ns = s.taken_ns = no_stamp;
        s.first_claim_ns.store(no_stamp, std::memory_order_relaxed);
        s.last_done_ns.store(no_stamp, std::memory_order_relaxed);
        s.admitted_ns = clock_.now_ns();
    }
    const bool takes_memory = s.memory == nullptr;
    try {
        furnish(s);
        if (takes_memory)
            guard.machine.decide<&LoaderMachine::holds_slots>(slots_bytes());
    } catch (const std::bad_alloc&) {
        s.memory = nullptr;   // every sample of the batch will fail
    }
    if (reads_)
        wakes.add(reads_->want(batch.slot, {s.indices.get(), s.size}));
    s.remaining.store(s.size, std::memory_order_relaxed);
    s.claim.store(std::uint64_t{s.size} << 32, std::memory_order_release);
    board_.open(batch.batch, batch.slot);
}

bool PrefetchCore::publish(std::uint64_t position, const DrawMailbox::Entry& entry) noexcept {
    if (recorder_ && entry.kind != DrawMailbox::Kind::stopped) {
        slots_[entry.slot].offered_ns = clock_.now_ns();
        published_.store(position + 1, std::memory_order_relaxed);
    }
    const DrawMailbox::Kind waits = mailbox_.put(position, entry);
    if (waits == DrawMailbox::Kind::waiting_outside)
        (void)::eventfd_write(descriptor_, 1);
    return waits == DrawMailbox::Kind::waiting;
}

void PrefetchCore::count_released(Guard& guard, Slot& s) noexcept {
    if (!s.collation || s.collation->released == 0)
        return;
    if (guard.machine->policy().counts_bytes())   // before this memory is subtracted, because such a batch needs it
        guard.machine.decide<&LoaderMachine::count>(held_bytes_of_all(guard));
    s.collation->samples_held.fetch_sub(std::exchange(s.collation->released, 0), std::memory_order_relaxed);
}

void PrefetchCore::complete(Guard& guard, std::uint32_t slot, bool has_failed) noexcept {
    if (SlotCollation* const collation = slots_[slot].collation.get()) {
        collation->making.store(false, std::memory_order_relaxed);
        // There is a set for each worker; but one that followed a stale hint may have begun another batch, and so taken
        // one more.
        if (collation->samples && guard.machine->frees_samples(sample_sets())) {
            if (guard.machine->policy().counts_bytes())   // as above
                guard.machine.decide<&LoaderMachine::count>(held_bytes_of_all(guard));
            free_samples(slots_[slot]);
        }
    }
    guard.machine.decide<&LoaderMachine::complete>(slot, has_failed);
}

void PrefetchCore::observe(Guard& guard, SampleWorker& worker) noexcept {
    if (worker.samples == 0)
        return;
    const bool knows_use = guard.machine.decide<&LoaderMachine::observe>(worker.samples, worker.ns, worker.use.take());
    worker.samples = worker.ns = 0;
    if (knows_use)
        recall_resting_workers(guard);
    board_.set_claim_size(guard.machine->policy().claim_size());
}

void PrefetchCore::recall_resting_workers(Guard& guard) noexcept {
    const std::size_t back = guard.machine.decide<&LoaderMachine::recall>();
    too_many_.store(guard.machine->too_many(), std::memory_order_relaxed);
    guard.wakes += back;
    if (back != 0)
        rest_tokens_.give(static_cast<std::uint32_t>(back));
}

// ---------------------------------------------------------------------------------------------- the end

void PrefetchCore::stop() noexcept {
    retain();   // the loop, once stopped, may destroy the loader before this function ends
    if (!stopping_.exchange(true, std::memory_order_acq_rel) && !fork_.is_forked()) {
        bool loop = false;
        {
            const auto guard = guarded_.lock();
            guard->machine.decide<&LoaderMachine::stop>();
            loop = publish(guard->machine->policy().next_position(), {.kind = DrawMailbox::Kind::stopped});
        }
        tokens_.give_all();
        rest_tokens_.give_all();
        if (reads_)
            reads_->stop();
        if (loop)
            wake_loop();
    }
    release();
}

void PrefetchCore::shut_down_loader() noexcept {
    if (lacks_threads())
        return retain();   // for ever: there are no threads to join
    stop();
    for (Crew& crew : crews_)
        crew.join();
    if (watch_)
        watch_->stop();
    if (reads_)
        reads_->join();
    inline_worker_.reset();   // it refers to recorder and source, and batches, which keep this alive, may outlive them
    std::uint64_t handed;
    {
        const auto guard = guarded_.lock();
        abandon(*guard);
        handed = guard->machine->policy().handed();
    }
    pass_left_ = 0;
    close(handed);
}

}   // namespace drawpoint
