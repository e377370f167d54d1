// The simulated loader: workers.
#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "diagnosis/replay/replay_loader.hpp"
#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>
#include <drawpoint/pipeline/loader/machine/detail/worker_costs.hpp>

namespace drawpoint {

void ReplayLoader::run_worker(std::uint32_t number) {
    Worker& worker = workers_[number];
    if (worker.state == WorkerState::spinning)
        --spinning_;
    for (;;) {
        switch (worker.state) {
        case WorkerState::spinning:
            if (!work_is_open() && !gate_.has_slots()) {
                if (time_.now_ns() < worker.spin_until_ns) {   // another worker was quicker
                    ++spinning_;
                    return time_.compute(number, worker.spin_until_ns - time_.now_ns());
                }
                if (sleeps(number))
                    return;
            }
            worker.state = WorkerState::idle;
            break;
        case WorkerState::waking:
            worker.state = WorkerState::looking;
            if (options_.costs.look_ns > 0)   // it claims once it has a core
                return time_.compute(number, options_.costs.look_ns);
            break;
        case WorkerState::looking:
        case WorkerState::resting:
        case WorkerState::parked: worker.state = WorkerState::idle; break;
        case WorkerState::idle:
            if (is_over_)
                return;
            if (inline_ && ready())
                return take();
            if (leaves(number))
                return;
            if (std::exchange(wants_order_, false) && begin_ordering(number))
                break;
            if (claim(number, worker))
                break;
            if (pytorch_) {
                worker.state = WorkerState::parked;
                return;
            }
            if (inline_)
                throw std::logic_error{"replay: a loader without workers has no batch to make"};
            observe(worker);
            turn(false);
            if (work_is_open() || gate_.has_slots() || wants_order_)
                break;
            worker.state = WorkerState::spinning;
            worker.spin_until_ns = time_.now_ns() + SpinPolicy::worker_spin_ns;
            ++spinning_;
            return time_.compute(number, SpinPolicy::worker_spin_ns);
        case WorkerState::waiting_for_read:
            worker.waited_ns += time_.now_ns() - worker.sample_ns;
            note_use(worker, false, time_.now_ns() - worker.sample_ns);
            note_read(number, worker);
            worker.state = WorkerState::making;
            break;
        case WorkerState::making:
            if (!make(number, worker))
                return;
            break;
        case WorkerState::collating:
            if (!collate(number, worker))
                return;
            break;
        case WorkerState::ordering:
            if (!order(number, worker.phase))
                return;
            worker.state = WorkerState::idle;
            if (machine_.prepared(true))
                turn(false);
            if (loop_ == LoopState::awaiting_order)
                time_.wait(static_cast<std::uint32_t>(workers_.size()), wake_ns_);
            break;
        }
    }
}

bool ReplayLoader::begin_ordering(std::uint32_t number) {
    if (!machine_.begin_preparing())
        return false;
    workers_[number].state = WorkerState::ordering;
    workers_[number].phase = Phase::begins;
    return true;
}

bool ReplayLoader::sleeps(std::uint32_t number) {
    turn(false);
    if (!machine_.sleeps(work_is_open()))
        return false;
    if (!gate_.arm(machine_.policy().wake_threshold())) {
        machine_.woken();
        return false;
    }
    if (tokens_ != 0) {
        --tokens_;
        return false;
    }
    time_.yield(number, yields_);
    workers_[number].state = WorkerState::parked;
    sleeping_.push_back(number);
    return true;
}

inline void ReplayLoader::note_use(Worker& worker, bool computes, std::int64_t ns) noexcept {
    if (!worker.measured)
        return;
    (computes ? worker.use.computed_ns : worker.use.waited_ns) += static_cast<std::uint64_t>(ns);
    worker.busy_ns += ns;
}

void ReplayLoader::end_use(Worker& worker) noexcept {
    if (!std::exchange(worker.measured, false))
        return;
    const std::int64_t ns = time_.now_ns() - worker.claim_ns;
    worker.budget.took(ns, readings_a_claim);
    ++worker.use.claims;
    worker.use.queued_ns += static_cast<std::uint64_t>(std::max<std::int64_t>(ns - worker.busy_ns, 0));
}

bool ReplayLoader::leaves(std::uint32_t number) {
    if (inline_ || pytorch_ || !machine_.too_many())
        return false;
    observe(workers_[number]);
    if (!machine_.leaves())
        return false;
    workers_[number].state = WorkerState::resting;
    resting_.push_back(number);
    turn(false, true);
    machine_.rests();
    recall_resting_workers();
    return true;
}

void ReplayLoader::observe(Worker& worker) noexcept {
    if (worker.samples == 0)
        return;
    if (machine_.observe(std::exchange(worker.samples, 0), std::exchange(worker.ns, 0), std::exchange(worker.use, {})))
        recall_resting_workers();
}

void ReplayLoader::recall_resting_workers() {
    for (std::size_t back = machine_.recall(); back != 0; --back, resting_.pop_back()) {
        workers_[resting_.back()].state = WorkerState::waking;
        time_.wait(resting_.back(), wake_ns_);
    }
}

bool ReplayLoader::claim(std::uint32_t number, Worker& worker) {
    if (pytorch_ ? sent_[number].empty() : !work_is_open())
        return false;
    const std::uint32_t slot = pytorch_ ? sent_[number].front() : slot_of_[current_ % slot_of_.size()];
    Slot& s = slots_[slot];
    const std::uint32_t left = s.size - s.next,
                        count = pytorch_ ? left : std::min(machine_.policy().claim_size(), left);
    if (s.next == 0)
        s.row.first_claim_ns = time_.now_ns();
    worker.slot = slot;
    worker.at = s.next;
    worker.end = s.next += count;
    worker.phase = Phase::begins;
    worker.claimed = count;
    worker.busy_ns = 0;
    worker.measured = machine_.policy().may_have_too_many() && worker.budget.next();
    worker.claim_ns = time_.now_ns();
    worker.state = WorkerState::making;
    if (pytorch_)
        sent_[number].pop_front();
    else if (s.next == s.size)
        ++current_;
    if (run_.collates && !pytorch_ && !s.making)
        take_samples(slot);
    return true;
}

inline bool ReplayLoader::begin_waiting(std::uint32_t number, Worker& worker, std::int64_t ns) {
    note_use(worker, false, ns);
    worker.waited_ns += ns;
    if (ns > 0)
        time_.wait(number, ns);
    return ns > 0;
}

inline bool ReplayLoader::begin_computing(std::uint32_t number, Worker& worker, std::int64_t ns) {
    if (ns > 0)
        ns += std::exchange(worker.owes_ns, 0);
    note_use(worker, true, ns);
    worker.stage_cpu_ns += ns;
    worker.batch_cpu_ns += ns;
    if (ns > 0)
        time_.compute(number, ns);
    return ns > 0;
}

bool ReplayLoader::make(std::uint32_t number, Worker& worker) {
    while (worker.at < worker.end) {
        const std::uint32_t sample = demands_.sample_at(slots_[worker.slot].position + worker.at);
        if (worker.phase == Phase::begins && !begin_sample(number, worker, sample))
            return false;
        if (!make_sample(number, worker, sample))
            return false;
        end_sample(number, worker, sample);
    }
    end_claim(worker);
    return true;
}

inline bool ReplayLoader::begin_sample(std::uint32_t number, Worker& worker, std::uint32_t sample) {
    worker.sample_ns = worker.bytes_ns = time_.now_ns();
    worker.waited_ns = worker.stage_cpu_ns = 0;
    worker.owes_ns += run_.overhead_ns + demands_.unstamped_ns(sample);
    worker.read = ReplayReads::nobody;
    if (rows_)
        rows_->begin_sample(number, worker.sample_ns);
    worker.piece = 0;
    worker.phase = Phase::waits;
    if (!reads_.any() || !wants(sample))
        return true;
    const ReplayReads::Take how = reads_.take(worker.slot, worker.at, number, worker.read);
    if (how != ReplayReads::Take::own)
        worker.piece = 1;   // the reader reads it
    if (how == ReplayReads::Take::ready)
        note_read(number, worker);
    if (how == ReplayReads::Take::waits)
        worker.state = WorkerState::waiting_for_read;
    return how != ReplayReads::Take::waits;
}

inline bool ReplayLoader::make_sample(std::uint32_t number, Worker& worker, std::uint32_t sample) {
    const std::span<const Demand> pieces = demands_.pieces_of(sample);
    for (; worker.piece < pieces.size(); ++worker.piece, worker.phase = Phase::waits) {
        const Demand& piece = pieces[worker.piece];
        if (worker.phase == Phase::waits) {
            if (worker.piece == 1 && reads_.any() && worker.read == ReplayReads::nobody && wants(sample)) {
                worker.bytes_ns = time_.now_ns();
                reads_.read_here(number, worker.bytes_ns - worker.sample_ns,
                                 pieces[0].wait_ns > 0 || demands_.line_ns(sample) > 0);
            }
            worker.phase = Phase::computes;
            const bool is_line = worker.piece == demands_.line_piece();
            if (begin_waiting(number, worker, is_line ? read_ns(sample, piece.wait_ns) : piece.wait_ns))
                return false;
        }
        if (worker.phase == Phase::computes) {
            worker.phase = Phase::ends;
            if (begin_computing(number, worker, piece.cpu_ns))
                return false;
        }
        if (rows_ && worker.piece != 0)
            rows_->end_stage(number, time_.now_ns(), std::exchange(worker.stage_cpu_ns, 0));
    }
    return true;
}

inline void ReplayLoader::end_sample(std::uint32_t number, Worker& worker, std::uint32_t sample) {
    if (rows_) {
        const SampleDemand& row = demands_.sample(sample);
        rows_->end_sample(number, slots_[worker.slot].row, worker.at, row.index, row.bytes, worker.waited_ns);
    }
    if (reads_.any()) {
        reads_.done(number, worker.read, time_.now_ns() - worker.bytes_ns);
        begin_reads(false);
    }
    ++worker.at;
    worker.phase = Phase::begins;
}

void ReplayLoader::end_claim(Worker& worker) {
    Slot& s = slots_[worker.slot];
    worker.samples += worker.claimed;
    worker.ns += static_cast<std::uint64_t>(time_.now_ns() - worker.claim_ns);
    worker.state = WorkerState::idle;
    s.remaining -= worker.claimed;
    if (s.remaining != 0)
        return end_use(worker);
    s.row.last_done_ns = time_.now_ns();
    if (run_.collates)
        worker.state = WorkerState::collating;
    else
        finish(worker);
}

bool ReplayLoader::collate(std::uint32_t number, Worker& worker) {
    Slot& s = slots_[worker.slot];
    switch (worker.phase) {
    case Phase::begins:
        worker.batch = demands_.batch_at(s.position, s.size);
        s.row.collate_worker = static_cast<std::uint16_t>(number);
        s.row.collate_begin_ns = time_.now_ns();
        [[fallthrough]];
    case Phase::waits:
        worker.phase = Phase::computes;
        if (begin_waiting(number, worker, worker.batch.collate.wait_ns))
            return false;
        [[fallthrough]];
    case Phase::computes:
        worker.phase = Phase::ends;
        if (begin_computing(number, worker, worker.batch.collate.cpu_ns))
            return false;
        [[fallthrough]];
    case Phase::ends: break;
    }
    if (s.row.collate_end_ns == no_stamp) {
        s.row.collate_end_ns = time_.now_ns();
        s.row.collate_cpu_ns = worker.batch.collate.cpu_ns;
        s.row.collate_run_queue_ns =
            std::max<std::int64_t>(s.row.collate_end_ns - s.row.collate_begin_ns - worker.batch.collate.ns(), 0);
    }
    if (begin_computing(number, worker, std::exchange(worker.batch.rest_cpu_ns, 0)))
        return false;
    if (!pytorch_) {
        // As the memory of CollatedBatch grows: in powers of two up to a huge page.
        const std::uint64_t bytes = worker.batch.bytes;
        s.arrays = std::max(s.arrays, slot_memory_bytes(bytes < slot_huge_page ? std::bit_ceil(bytes) : bytes, 0));
        s.making = false;
    }
    finish(worker);
    return true;
}

void ReplayLoader::finish(Worker& worker) {
    if (pytorch_) {
        worker.state = WorkerState::idle;
        return begin_sending(static_cast<std::uint32_t>(&worker - workers_.data()));
    }
    end_use(worker);
    observe(worker);
    if (run_.collates)
        free_surplus_samples(slots_[worker.slot]);
    worker.owes_ns += options_.costs.hand_over_ns;
    worker.state = WorkerState::idle;
    machine_.complete(worker.slot, false);
    turn(false);
}

}   // namespace drawpoint
