// PrefetchCore's functions for workers: claims, sleep and rest.
#include <new>
#include <utility>

#include "pipeline/loader/threads/prefetch_core.hpp"

namespace drawpoint {

namespace {

// Without a recorder, only some claims are timed, to choose the size of claims.
constexpr std::uint64_t first_claims = 16, timed_every = 8;

/// Lowers `first` to `ns`: workers that claim samples of one batch may have read the clock in another order.
void lower_to(std::atomic<std::int64_t>& first, std::int64_t ns) noexcept {
    std::int64_t seen = first.load(std::memory_order_relaxed);
    while ((seen == no_stamp || ns < seen) && !first.compare_exchange_weak(seen, ns, std::memory_order_relaxed)) {
    }
}

}   // namespace

void PrefetchCore::perform(Wakes wakes) noexcept {
    if (wakes.workers != 0)
        tokens_.give(static_cast<std::uint32_t>(wakes.workers));
    if (wakes.loop)
        wake_loop();
    for (; wakes.readers != 0; --wakes.readers)
        reads_->perform(ReadAhead::Act::wake);
    for (; wakes.new_readers != 0; --wakes.new_readers)
        reads_->perform(ReadAhead::Act::start);
}

void PrefetchCore::perform(Wakes wakes, SampleWorker& worker) noexcept {
    perform(wakes);
    if (wakes.prepare_next)
        prepare_next_order(worker);
}

bool PrefetchCore::claim_one(SampleWorker& worker) noexcept {
    for (;;) {
        if (stopping())
            return false;
        ClaimBoard::Oldest oldest;
        if (!board_.find(oldest))
            return false;
        const std::uint32_t i = oldest.slot;
        Slot& s = slots_[i];
        const std::uint32_t most = board_.claim_size();
        // Before the claim: what the claim itself waits for belongs to the sample.
        const bool timed = recorder_ || worker.claims < first_claims || worker.claims % timed_every == 0;
        std::int64_t begin = timed ? clock_.now_ns() : no_stamp;
        const std::uint64_t before = s.claim.fetch_add(most, std::memory_order_acq_rel);
        const auto size = static_cast<std::uint32_t>(before >> 32);
        const auto next = static_cast<std::uint32_t>(before);
        if (std::uint64_t{next} + most >= size)
            board_.pass_by(oldest.batch);
        if (next >= size)
            continue;
        const std::uint32_t count = std::min(most, size - next);
        if (recorder_) {
            begin = std::max(begin, s.admitted_ns);   // after a stale hint the batch may be newer
            lower_to(s.first_claim_ns, begin);
        }
        ++worker.claims;
        if (parts_ && !reads_) {
            worker.is(WorkerActivity::What::order, s.epoch);
            fill_indices(s, next, count);
        }
        const bool measured = measures_use_.load(std::memory_order_relaxed) && worker.use.begin(clock_);
        if (s.collation && !s.collation->making.load(std::memory_order_acquire))
            begin_making(s);
        const std::int64_t end = maker_.make(worker, s, i, next, count, begin, stopping_, guarded_.mutex());
        if (timed) {
            worker.samples += count;
            worker.ns += static_cast<std::uint64_t>(std::max<std::int64_t>(end - begin, 0));
        }
        const bool whole = count == size;
        if (whole || s.remaining.fetch_sub(count, std::memory_order_acq_rel) == count) {
            const std::int64_t done = !recorder_ ? no_stamp
                                      : whole    ? end
                                                 : clock_.now_ns();   // after the last sample of all workers
            if (recorder_)
                s.last_done_ns.store(done, std::memory_order_relaxed);
            if (s.failed) {
                if (reads_)
                    reads_->withdraw(i, 0);   // before the indices change
                maker_.settle_failures(s);
            }
            if (s.collation)
                maker_.collate(worker, s, done, stopping_, guarded_.mutex());
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
    const auto guard = guarded_.lock();
    if (s.collation->making.load(std::memory_order_relaxed))
        return;
    try {
        take_samples(s);
    } catch (const std::bad_alloc&) {
        // every sample of the batch will fail
    }
    s.collation->making.store(true, std::memory_order_release);
}

void PrefetchCore::finish(SampleWorker& worker, std::uint32_t slot) noexcept {
    Wakes wakes;
    {
        const auto guard = guarded_.lock();
        observe(*guard, worker);
        count_released(*guard, slots_[slot]);
        complete(*guard, slot, slots_[slot].failed);
        wakes = turn(*guard);
    }
    perform(wakes, worker);
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
            worker = std::make_unique<SampleWorker>();   // without a recorder's ring: it works, unrecorded
        } catch (...) {
            stop();
            return;
        }
    }
    try {
        if (watch_)
            worker->activity =
                &watch_->add_worker(worker->track ? std::optional{worker->track.worker()} : std::nullopt);
    } catch (const std::bad_alloc&) {
        // unwatched
    }
    arrive();
    const auto too_many = [this] { return too_many_.load(std::memory_order_relaxed); };
    do {
        while (!too_many() && claim_one(*worker)) {
        }
    } while (too_many() ? leave(*worker) : idle(*worker));
}

bool PrefetchCore::idle(SampleWorker& worker) noexcept {
    worker.is(WorkerActivity::What::idle);
    Wakes wakes;
    {
        const auto guard = guarded_.lock();
        observe(*guard, worker);
        wakes = turn(*guard);
    }
    perform(wakes, worker);
    const std::int64_t until = clock_.now_ns() + SpinPolicy::worker_spin_ns;
    do {
        if (stopping())
            return false;
        if (board_.is_open() || too_many_.load(std::memory_order_relaxed) || gate_.has_slots())
            return true;
        spin_pause();
    } while (clock_.now_ns() < until);

    bool sleeps = false;
    {
        const auto guard = guarded_.lock();
        wakes = turn(*guard);
        if (!stopping() && guard->machine.decide<&LoaderMachine::sleeps>(board_.is_open())) {
            sleeps = gate_.arm(guard->machine->policy().wake_threshold());
            if (sleeps)
                ++guard->parks;
            else
                guard->machine.decide<&LoaderMachine::woken>();
        }
    }
    perform(wakes, worker);
    if (sleeps)
        tokens_.take(worker_yields_.load(std::memory_order_relaxed));
    return !stopping();
}

// ---------------------------------------------------------------------------------------------- who works

void PrefetchCore::start_crew() {
    if (watch_)
        watch_->start();
    if (!inline_) {
        start_workers(options_.num_workers);
        if (!crews_.empty()) {
            started_ = true;
            return;
        }
        inline_ = true;   // safe: there is no worker to read it
    }
    inline_worker_ = maker_.make_worker();
    if (watch_)
        inline_worker_->activity = &watch_->loop();
    guarded_.lock()->machine.decide<&LoaderMachine::work_inline>();
    measures_use_.store(false, std::memory_order_relaxed);
    started_ = true;
}

void PrefetchCore::start_workers(std::size_t num_workers) {
    std::size_t there = 0;
    for (const Crew& crew : crews_)
        there += crew.size();
    if (num_workers <= there)
        return;
    crews_.reserve(crews_.size() + 1);   // so that push_back() cannot throw once the crew has begun
    Crew crew = pool_->start(num_workers - there, *this);
    if (crew.size() != 0)
        crews_.push_back(std::move(crew));
}

void PrefetchCore::arrive() noexcept {
    {
        const auto guard = guarded_.lock();
        if (guard->machine.decide<&LoaderMachine::arrives>())
            return;
        ++guard->parks;
    }
    rest_tokens_.take();
}

bool PrefetchCore::leave(SampleWorker& worker) noexcept {
    worker.is(WorkerActivity::What::idle);
    Wakes wakes;
    {
        const auto guard = guarded_.lock();
        observe(*guard, worker);
        if (!guard->machine.decide<&LoaderMachine::leaves>())
            return !stopping();
        recall_resting_workers(*guard);
        wakes = turn(*guard, Asks{.leaves = true});
    }
    perform(wakes, worker);
    worker.scratch.reset();   // the memory plan counts no scratch for a resting worker
    std::vector<std::byte>{}.swap(worker.reads.own);
    {
        const auto guard = guarded_.lock();
        guard->machine.decide<&LoaderMachine::rests>();
        ++guard->parks;
        recall_resting_workers(*guard);
    }
    rest_tokens_.take();
    return !stopping();
}

}   // namespace drawpoint
