// PrefetchCore's part for the workers: claims, turns and sleep.
#include <new>
#include <utility>

#include "pipeline/loader/threads/prefetch_core.hpp"

namespace drawpoint {

namespace {

// Unrecorded, some claims are timed for their size alone.
constexpr std::uint64_t first_claims = 16, timed_every = 8;

}   // namespace

void PrefetchCore::perform(Wakes wakes) noexcept {
    if (wakes.workers != 0) {
        tokens_.fetch_add(static_cast<std::uint32_t>(wakes.workers), std::memory_order_release);
        if (wakes.workers == 1)
            tokens_.notify_one();
        else
            tokens_.notify_all();
    }
    if (wakes.loop)
        wake_loop();
    if (wakes.prepare_next)
        prepare_next_order();
}

void PrefetchCore::prepare_next_order() noexcept {
    std::unique_lock lock{mutex_};
    if (!next_wanted_ || order_busy_ || policy_.admitted() != policy_.limit() || policy_.stopped())
        return;
    order_busy_ = true;
    const std::uint64_t next = order_epoch_ + 1;
    lock.unlock();
    bool done = true;
    try {
        sampler_->order(next, order_);
    } catch (...) {
        done = false;   // the pass itself will ask again, and throw
    }
    lock.lock();
    order_busy_ = next_wanted_ = false;
    Wakes wakes;
    if (done && !policy_.stopped()) {
        order_epoch_ = next;
        order_first_batch_ = policy_.limit();
        extend();
        next_prepared_ = true;
        wakes = turn();
    }
    lock.unlock();
    order_done_.notify_all();
    perform(wakes);
}

bool PrefetchCore::claim_one(SampleWorker& worker) noexcept {
    for (;;) {
        if (stopping())
            return false;
        std::uint64_t oldest = current_.load(std::memory_order_acquire);
        if (oldest >= opened_.load(std::memory_order_acquire))
            return false;
        // A stale hint leads to a newer batch at worst: what is claimed says itself what it is.
        const std::uint32_t i = slot_of_[oldest % slot_of_.size()].load(std::memory_order_relaxed);
        Slot& s = slots_[i];
        const std::uint32_t most = claim_size_.load(std::memory_order_relaxed);
        // Before the claim: no sample of the batch begins earlier. Unrecorded, some claims are timed for their size alone.
        const bool timed = recorder_ || worker.claims < first_claims || worker.claims % timed_every == 0;
        std::int64_t begin = timed ? clock_.now_ns() : no_stamp;
        const std::uint64_t before = s.claim.fetch_add(most, std::memory_order_acq_rel);
        const auto size = static_cast<std::uint32_t>(before >> 32);
        const auto next = static_cast<std::uint32_t>(before);
        if (std::uint64_t{next} + most >= size)
            current_.compare_exchange_strong(oldest, oldest + 1, std::memory_order_acq_rel);
        if (next >= size)
            continue;
        const std::uint32_t count = std::min(most, size - next);
        if (recorder_) {
            begin = std::max(begin, s.admitted_ns);   // a stale hint may have led to a batch admitted since
            if (next == 0)
                s.first_claim_ns.store(begin, std::memory_order_relaxed);
        }
        ++worker.claims;
        const bool measured = measures_use_.load(std::memory_order_relaxed) && worker.use.begin(clock_);
        if (s.collation && !s.collation->making.load(std::memory_order_acquire))
            begin_making(s);
        const std::int64_t end = maker_.make(worker, s, i, next, count, begin, stopping_, mutex_);
        if (timed) {
            worker.samples += count;
            worker.ns += static_cast<std::uint64_t>(std::max<std::int64_t>(end - begin, 0));
        }
        const bool whole = count == size;
        if (whole || s.remaining.fetch_sub(count, std::memory_order_acq_rel) == count) {
            const std::int64_t done = !recorder_ ? no_stamp
                                      : whole    ? end
                                                 : clock_.now_ns();   // after everybody's last sample
            if (recorder_)
                s.last_done_ns.store(done, std::memory_order_relaxed);
            if (s.collation)
                maker_.collate(worker, s, done, stopping_, mutex_);
            if (measured)
                worker.use.end(clock_);
            finish(worker, i);
        } else if (measured) {
            worker.use.end(clock_);
        }
        return true;
    }
}

void PrefetchCore::begin_making(Slot& s) noexcept {
    const std::lock_guard lock{mutex_};
    if (s.collation->making.load(std::memory_order_relaxed))
        return;
    try {
        take_samples(s);
    } catch (const std::bad_alloc&) {
        // every sample of the batch will say so
    }
    s.collation->making.store(true, std::memory_order_release);
}

void PrefetchCore::finish(SampleWorker& worker, std::uint32_t slot) noexcept {
    Wakes wakes;
    {
        const std::lock_guard lock{mutex_};
        observe(worker);
        count_released(slots_[slot]);
        complete(slot, slots_[slot].failed);
        wakes = turn();
    }
    perform(wakes);
}

void PrefetchCore::work(std::size_t) noexcept {
    if (on_worker_start_)
        on_worker_start_();
    std::unique_ptr<SampleWorker> worker;
    try {
        worker = maker_.make_worker();
        if (recorder_)
            recorder_->add_this_thread("worker " + std::to_string(worker->track.worker()));
    } catch (...) {
        try {
            worker = std::make_unique<SampleWorker>();   // without a ring: unrecorded, but working
        } catch (...) {
            stop();
            return;
        }
    }
    arrive();
    const auto too_many = [this] { return too_many_.load(std::memory_order_relaxed); };
    do {
        while (!too_many() && claim_one(*worker)) {
        }
    } while (too_many() ? leave(*worker) : idle(*worker));
}

bool PrefetchCore::idle(SampleWorker& worker) noexcept {
    Wakes wakes;
    {
        const std::lock_guard lock{mutex_};
        observe(worker);
        wakes = turn();
    }
    perform(wakes);
    const std::int64_t until = clock_.now_ns() + spin_ns;
    do {
        if (stopping())
            return false;
        if (work_is_open() || too_many_.load(std::memory_order_relaxed) ||
            (gate_.load(std::memory_order_relaxed) & slot_bits) != 0)
            return true;
        spin_pause();
    } while (clock_.now_ns() < until);

    bool sleeps = false;
    {
        const std::lock_guard lock{mutex_};
        wakes = turn();
        if (!stopping() && !work_is_open() && !wakes.prepare_next && !too_many_.load(std::memory_order_relaxed)) {
            policy_.park();
            sleeps = arm();
            if (sleeps)
                ++parks_;
            else
                policy_.woken(1);
        }
    }
    perform(wakes);
    if (sleeps)
        wait_for_token(tokens_);
    return !stopping();
}

void PrefetchCore::wait_for_token(std::atomic<std::uint32_t>& tokens) noexcept {
    for (;;) {
        std::uint32_t left = tokens.load(std::memory_order_acquire);
        while (left != 0)
            if (tokens.compare_exchange_weak(left, left - 1, std::memory_order_acquire))
                return;
        tokens.wait(0, std::memory_order_acquire);
    }
}

}   // namespace drawpoint
