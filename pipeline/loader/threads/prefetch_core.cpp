#include <drawpoint/instrumentation/facts.hpp>
#include "pipeline/loader/threads/prefetch_core.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>
#include <utility>

#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/pipeline/cache/sample_cache.hpp>

namespace drawpoint {

namespace {

constexpr std::uint32_t tokens_of_stop = 1u << 16;

bool reads_ahead(const SampleSource& source, const LoaderOptions& options) {
    return source.reads() != nullptr && !(source.fills_runs() && options.collate == nullptr);
}

std::uint8_t add_pipeline(Recorder* recorder, const SampleSource& source, const LoaderOptions& options,
                          std::uint32_t max_overtakes, std::string_view name) {
    std::vector<std::string> stages = source.stages();
    if (stages.empty() || stages.size() > max_stages)
        throw std::invalid_argument{"a sample source must have 1 to " + std::to_string(max_stages) + " stages, got " +
                                    std::to_string(stages.size())};
    if (!recorder)
        return 0;
    return recorder->add_pipeline(
        {.name = std::string{name},
         .stages = std::move(stages),
         .batch_size = static_cast<std::uint32_t>(options.batch_size),
         .num_workers = static_cast<std::uint32_t>(options.num_workers),
         .prefetch_depth = static_cast<std::uint32_t>(options.prefetch_depth),
         .max_overtakes = max_overtakes,
         .read_concurrency = reads_ahead(source, options) ? static_cast<std::uint32_t>(options.read_concurrency) : 0u,
         .memory_budget = options.memory_budget});
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
    : LoaderCore{source.layout(), plan.slot_samples, plan.prefetch_depth + 1, asked.collate != nullptr,
                 LoaderPolicy::max_slots},
      context_{&runtime.context()},
      pool_{&runtime.workers()},
      on_worker_start_{runtime.options().on_worker_start},
      sampler_{&sampler},
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
      pipeline_{add_pipeline(recorder_, source, options_, overtakes_of(options_.order, options_.max_overtakes), name)},
      reads_{reads_of(source, options_, asked, plan.slot_samples, reads_memory(options_, plan), recorder_ != nullptr,
                      clock_)},
      maker_{source, reads_.get(), recorder_, clock_, pipeline_, asked.seed, asked.collate},
      policy_{{.batch_size = plan.slot_samples,
               .num_workers = options_.num_workers,
               .prefetch_depth = options_.prefetch_depth,
               .order = options_.order,
               .max_overtakes = options_.max_overtakes,
               .batches_budget_bytes = plan.batches_budget_bytes,
               .batch_bytes_hint = asked.collate != nullptr ? plan.slot_bytes : 0,
               .cores = static_cast<std::size_t>(std::ceil(usable_cores()))}},
      order_(order_size_),
      most_spin_ns_{most_spin_ns(options_.num_workers)},
      spin_ns_{spin_ns},
      inline_{options_.num_workers == 0} {
    if (recorder_ && asked.prefetch_depth != options_.prefetch_depth)
        recorder_->set_fact(std::string{facts::asked_depth_prefix} + recorder_->pipeline_name(pipeline_),
                            std::to_string(asked.prefetch_depth));
    sample_sets_ = plan.sample_sets;
    most_workers_bytes_ = plan.workers_bytes;
    held_to_ = numbers();
    measures_use_.store(policy_.may_have_too_many(), std::memory_order_relaxed);
    noted_ = setting();
    registry_ = asio::use_service<ParkedDraws>(*context_).registry();
    registry_->add(this);
}

PrefetchCore::~PrefetchCore() { registry_->remove(this); }

// ---------------------------------------------------------------------------------------------- under the mutex

std::uint64_t PrefetchCore::take_up() noexcept {
    std::uint64_t gate = gate_.load(std::memory_order_acquire);
    std::uint64_t next;
    do {
        next = gate & ~slot_bits;
        if (armed_ && threshold(gate) != nobody)
            next = with_threshold(next, policy_.wake_threshold());   // counted down by what is taken up here
    } while ((gate & slot_bits) != 0 &&
             !gate_.compare_exchange_weak(gate, next, std::memory_order_acq_rel, std::memory_order_acquire));
    if (armed_ && threshold(gate) == nobody) {
        armed_ = false;
        policy_.woken(1);   // by the give-back that changed the threshold
    }
    return gate;
}

bool PrefetchCore::is_armed() const noexcept {
    if (!armed_)
        return false;
    const std::uint64_t left = threshold(gate_.load(std::memory_order_relaxed));
    return left == nobody || left <= policy_.wake_threshold();   // else set before bytes were lacking
}

bool PrefetchCore::arm() noexcept {
    std::uint64_t gate = gate_.load(std::memory_order_acquire);
    do {
        if ((gate & slot_bits) != 0)
            return false;
        if (armed_ && threshold(gate) <= policy_.wake_threshold())
            return true;
    } while (!gate_.compare_exchange_weak(gate, with_threshold(gate, policy_.wake_threshold()),
                                          std::memory_order_acq_rel, std::memory_order_relaxed));
    armed_ = true;
    return true;
}

PrefetchCore::Wakes PrefetchCore::turn(const Asks& asks) noexcept {
    Wakes wakes;
    ++turns_;
    do {
        const std::uint64_t gate = !asks.loop_waits && may_leave_slots() ? 0 : take_up();
        for (std::uint64_t back = gate & slot_bits; back != 0; back &= back - 1)
            policy_.release(static_cast<std::uint32_t>(std::countr_zero(back)));
        if (retiring_ != 0) [[unlikely]]
            retire_slots();

        const bool counts = policy_.counts_bytes();
        if (counts)
            count_bytes();
        std::uint64_t samples = 0;
        while (const auto admission =
                   policy_.admit(inline_ || asks.loop_waits ? position_ : 0, counts ? unclaimed() : 0)) {
            if (counts)
                trim_slots();
            open(*admission);
            samples += slots_[admission->slot].size;
        }
        if (counts)
            trim_slots();
        while (const auto batch_to_hand = policy_.hand_over())
            wakes.loop |= publish(batch_to_hand->position, batch_to_hand->slot, batch_to_hand->failed ? failed : batch);

        wakes.workers += policy_.wake(samples);
        // Those awake may be stuck in what nobody wants any more.
        const std::size_t at_least =
            std::max<std::size_t>(asks.wakes, (asks.loop_waits || asks.leaves) && work_is_open());
        if (wakes.workers < at_least) {
            const std::size_t more = std::min(at_least - wakes.workers, policy_.parked());
            policy_.woken(more);
            wakes.workers += more;
        }
        if (armed_ && policy_.parked() == 0) {
            // A give-back that turned the threshold first has woken one of those counted here.
            if (threshold(gate_.fetch_or(nobody << 56, std::memory_order_acq_rel)) == nobody)
                --wakes.workers;
            armed_ = false;
        }
    } while (policy_.parked() > 0 && !is_armed() && !arm());
    wakes_ += wakes.workers;
    // Batches first: whoever claimed the last of them comes by here again.
    wakes.prepare_next =
        next_wanted_ && !order_busy_ && policy_.admitted() == policy_.limit() && !policy_.stopped() && !work_is_open();
    return wakes;
}

void PrefetchCore::count_bytes() noexcept {
    for (const bool grown : {false, true})   // else buffers that went to another slot would count in both for a moment
        for (std::uint32_t slot = 0; slot < slot_count_; ++slot) {
            const std::uint64_t samples = samples_bytes(slot), all = held_bytes(slot, samples);
            if ((all >= policy_.bytes_of(slot)) == grown)
                policy_.holds(slot, all, samples);
            largest_samples_bytes_ = std::max(largest_samples_bytes_, samples);
            largest_rest_bytes_ = std::max(largest_rest_bytes_, all - samples);
        }
    most_slots_bytes_ = std::max(most_slots_bytes_, policy_.batches_bytes());
}

void PrefetchCore::count_released(Slot& s) noexcept {
    if (!s.collation || s.collation->released == 0)
        return;
    if (policy_.counts_bytes())
        count_bytes();   // with what it took until now: that is what such a batch takes
    s.collation->samples_held.fetch_sub(std::exchange(s.collation->released, 0), std::memory_order_relaxed);
}

// Under the mutex, for what was admitted in its place must not be made before it is gone. That costs little: giving
// pages up takes a sixth to a twentieth of the time that taking them did, and sizes that settle are trimmed no more.
void PrefetchCore::trim_slots() noexcept {
    for (std::uint64_t left = policy_.trims(); left != 0; left &= left - 1)
        trim(static_cast<std::uint32_t>(std::countr_zero(left)));
}

void PrefetchCore::open(LoaderPolicy::Admission admission) noexcept {
    Slot& s = slots_[admission.slot];
    const std::uint64_t number = admission.batch - order_first_batch_;
    const std::size_t first = number * options_.batch_size;
    if (reads_)
        reads_->withdraw(admission.slot, 0);   // before the indices change
    s.epoch = order_epoch_;
    s.number = static_cast<std::uint32_t>(number);
    s.size = static_cast<std::uint32_t>(std::min(options_.batch_size, order_size_ - first));
    std::copy_n(order_.begin() + static_cast<std::ptrdiff_t>(first), s.size, s.indices.get());
    if (s.failed) {
        s.failures.clear();
        s.failed = false;
    }
    if (s.collation) {
        s.collation->begin_ns.store(no_stamp, std::memory_order_relaxed);
        s.collation->end_ns.store(no_stamp, std::memory_order_relaxed);
        s.collation->worker.store(-1, std::memory_order_relaxed);
        s.collation->bytes.store(0, std::memory_order_relaxed);
        s.collation->lacks_samples.store(false, std::memory_order_relaxed);
    }
    if (recorder_) {
        s.offered_ns = s.taken_ns = no_stamp;
        s.first_claim_ns.store(no_stamp, std::memory_order_relaxed);
        s.last_done_ns.store(no_stamp, std::memory_order_relaxed);
        s.detail = recorder_->batch_detail(admission.batch);
        s.admitted_ns = clock_.now_ns();
    }
    const bool takes_memory = s.memory == nullptr;
    try {
        furnish(s);
        if (takes_memory)
            most_slots_bytes_ = std::max(most_slots_bytes_, slots_bytes());
    } catch (const std::bad_alloc&) {
        s.memory = nullptr;   // every sample of the batch will say so
    }
    if (reads_)
        reads_->want(admission.slot, {s.indices.get(), s.size});
    s.remaining.store(s.size, std::memory_order_relaxed);
    s.claim.store(std::uint64_t{s.size} << 32, std::memory_order_release);
    slot_of_[admission.batch % slot_of_.size()].store(admission.slot, std::memory_order_relaxed);
    opened_.store(admission.batch + 1, std::memory_order_release);
}

void PrefetchCore::complete(std::uint32_t slot, bool has_failed) noexcept {
    if (SlotCollation* const collation = slots_[slot].collation.get()) {
        collation->making.store(false, std::memory_order_relaxed);
        // Each worker is at one batch, but one that slept on a stale hint may have begun another, which needed a set
        // more.
        if (collation->samples && sample_sets() > sample_sets_) {
            if (policy_.counts_bytes())
                count_bytes();   // with what it took until now
            free_samples(slots_[slot]);
        }
    }
    policy_.complete(slot, has_failed);
}

bool PrefetchCore::publish(std::uint64_t position, std::uint64_t slot, Kind kind) noexcept {
    if (recorder_ && kind != stopped) {
        slots_[slot].offered_ns = clock_.now_ns();
        published_.store(position + 1, std::memory_order_relaxed);
    }
    Cell& cell = cells_[position & cell_mask];
    cell.size = slots_[slot].size;
    const std::uint64_t before = cell.word.exchange((position + 1) << 32 | slot << 3 | kind, std::memory_order_acq_rel);
    if ((before & 7) == waiting_blocked)
        cell.word.notify_one();
    return (before & 7) == waiting;
}

void PrefetchCore::observe(SampleWorker& worker) noexcept {
    if (worker.samples == 0)
        return;
    policy_.observe(worker.samples, worker.ns);
    worker.samples = worker.ns = 0;
    if (const WorkerUse use = worker.use.take(); use.claims != 0) {
        policy_.observe_use(use);
        count_workers();
    }
    if (const std::uint32_t size = policy_.claim_size(); size != claim_size_.load(std::memory_order_relaxed))
        claim_size_.store(size, std::memory_order_relaxed);
}

void PrefetchCore::abandon() noexcept {
    const std::int64_t now = recorder_ ? clock_.now_ns() : no_stamp;
    for (; position_ != policy_.next_position(); ++position_) {
        const std::uint64_t cell = cells_[position_ & cell_mask].word.load(std::memory_order_acquire);
        const auto i = static_cast<std::uint32_t>(cell >> 3 & 0x1fff'ffff);
        record(slots_[i], i, BatchStatus::abandoned, now, 0);
        policy_.release(i);
    }
    const LoaderPolicy::Abandoned given_up = policy_.abandon();
    for (std::uint64_t left = given_up.complete; left != 0; left &= left - 1) {
        const auto i = static_cast<std::uint32_t>(std::countr_zero(left));
        record(slots_[i], i, BatchStatus::abandoned, now, 0);
    }
    for (std::uint64_t left = given_up.open; left != 0; left &= left - 1) {
        const auto i = static_cast<std::uint32_t>(std::countr_zero(left));
        Slot& s = slots_[i];
        record(s, i, BatchStatus::abandoned, now, 0);
        if (s.collation)
            s.collation->lacks_samples.store(true, std::memory_order_relaxed);
        // Claims what nobody has begun, and counts it as done. Workers in the midst of a sample finish it.
        const std::uint64_t before = s.claim.fetch_add(s.size, std::memory_order_acq_rel);
        const auto next = static_cast<std::uint32_t>(before);
        const std::uint32_t rest = next < s.size ? s.size - next : 0;
        if (reads_)
            reads_->withdraw(i, s.size - rest);
        if (rest != 0 && (rest == s.size || s.remaining.fetch_sub(rest, std::memory_order_acq_rel) == rest))
            complete(i, false);
    }
    next_wanted_ = next_prepared_ = false;
    retire_slots();
}

// ---------------------------------------------------------------------------------------------- the end

void PrefetchCore::stop() noexcept {
    retain();   // the loop that this ends may destroy the loader before we are through
    if (!stopping_.exchange(true, std::memory_order_acq_rel)) {
        bool loop = false;
        {
            const std::lock_guard lock{mutex_};
            policy_.stop();
            loop = publish(policy_.next_position(), 0, stopped);
        }
        tokens_.fetch_add(tokens_of_stop, std::memory_order_release);
        tokens_.notify_all();
        bench_tokens_.fetch_add(tokens_of_stop, std::memory_order_release);
        bench_tokens_.notify_all();
        if (reads_)
            reads_->stop();
        if (loop)
            wake_loop();
    }
    release();
}

void PrefetchCore::shut_down_loader() noexcept {
    stop();
    for (Crew& crew : crews_)
        crew.join();
    if (reads_)
        reads_->join();
    inline_worker_.reset();   // it refers to the recorder and the source, which batches may outlive
    {
        const std::lock_guard lock{mutex_};
        abandon();
    }
    pass_left_ = 0;
    close(policy_.handed());
}

LoaderCounters PrefetchCore::counters() noexcept {
    const ReadAheadCounters reads = reads_ ? reads_->counters() : ReadAheadCounters{};
    const std::lock_guard lock{mutex_};
    const bool seen = samples_taken_ != 0;
    const std::uint64_t cached = cache_ != nullptr ? cache_->counters().bytes : 0;
    const std::uint64_t always = memory_plan_.order_bytes + cached;
    const std::uint64_t slots = policy_.counts_bytes() && seen
                                    ? std::max(policy_.expected_batches_bytes(largest_rest_bytes_ * slot_count_ +
                                                                              largest_samples_bytes_ * sample_sets_),
                                               most_slots_bytes_)
                                    : memory_plan_.slots_bytes;
    const std::uint64_t largest = policy_.counts_bytes() ? policy_.largest_batch_bytes()
                                  : seen                 ? memory_plan_.slot_bytes
                                                         : 0;
    return {.batches_taken = batches_taken_,
            .batches_abandoned = batches_abandoned_,
            .samples_taken = samples_taken_,
            .slots_replaced = slots_replaced(),
            .suspensions = suspensions_,
            .worker_wakes = wakes_ + user_wakes_.load(std::memory_order_relaxed),
            .worker_parks = parks_,
            .turns = turns_,
            .handler_fallbacks = wake_buffer_.fallbacks(),
            .slots_bytes = slots_bytes(),
            .workers_running = policy_.begun() + std::min(benched_ + leaving_,
                                                          held_to_.num_workers - policy_.wanted_workers()),   // or rest
            .reads_ahead = reads.ahead,
            .read_retries = reads.retries,
            .reads_late = reads.late,
            .read_bytes = reads.bytes,
            .largest_batch_bytes = largest,
            .peak_bytes =
                always + std::max(past_peak_bytes_, most_workers_bytes_ + most_slots_bytes_) + reads.most_bytes,
            .expected_bytes =
                always + memory_plan_.workers_bytes + slots + (seen ? reads.most_bytes : memory_plan_.in_flight_bytes),
            .last_offered_ns = last_offered_ns_};
}

}   // namespace drawpoint
