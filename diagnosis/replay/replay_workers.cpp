// The simulated loader's workers, as in pipeline/prefetch_workers.cpp and sample_maker.cpp, and its reads.
#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "diagnosis/replay/replay_loader.hpp"
#include <drawpoint/pipeline/loader/machine/slot_bytes.hpp>
#include <drawpoint/pipeline/loader/machine/worker_costs.hpp>

namespace drawpoint {

void ReplayLoader::run_worker(std::uint32_t number) {
    Worker& worker = workers_[number];
    if (worker.state == WorkerState::spinning)
        --spinning_;
    for (;;) {
        switch (worker.state) {
        case WorkerState::spinning:
            if (!work_is_open() && back_ == 0) {
                if (time_.now_ns() < worker.spin_until_ns) {   // another one was quicker
                    ++spinning_;
                    return time_.wait(number, worker.spin_until_ns - time_.now_ns());
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
        case WorkerState::benched:
        case WorkerState::parked: worker.state = WorkerState::idle; break;
        case WorkerState::idle:
            if (is_over_)
                return;
            if (inline_ && ready())
                return take();
            if (leaves(number))
                return;
            if (claim(worker))
                break;
            if (inline_)
                throw std::logic_error{"replay: a loader without workers has no batch to make"};
            observe(worker);
            turn(false);
            if (work_is_open() || back_ != 0)
                break;
            worker.state = WorkerState::spinning;
            worker.spin_until_ns = time_.now_ns() + spin_ns;
            ++spinning_;
            time_.yield(number);   // std::atomic::wait does before it sleeps
            return time_.wait(number, spin_ns);
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
        }
    }
}

bool ReplayLoader::sleeps(std::uint32_t number) {
    turn(false);
    if (work_is_open() || policy_.begun() > policy_.wanted_workers())
        return false;
    policy_.park();
    if (!arm()) {
        policy_.woken(1);
        return false;
    }
    if (tokens_ != 0) {
        --tokens_;
        return false;
    }
    workers_[number].state = WorkerState::parked;
    sleeping_.push_back(number);
    return true;
}

void ReplayLoader::note_use(Worker& worker, bool computes, std::int64_t ns) noexcept {
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
    if (inline_ || policy_.begun() <= policy_.wanted_workers())
        return false;
    observe(workers_[number]);
    if (policy_.begun() <= policy_.wanted_workers())
        return false;
    policy_.end();
    workers_[number].state = WorkerState::benched;
    benched_.push_back(number);
    turn(false, true);
    return true;
}

void ReplayLoader::observe(Worker& worker) noexcept {
    if (worker.samples == 0)
        return;
    policy_.observe(std::exchange(worker.samples, 0), std::exchange(worker.ns, 0));
    const WorkerUse use = std::exchange(worker.use, {});
    if (use.claims == 0)
        return;
    policy_.observe_use(use);
    for (; !benched_.empty() && policy_.begun() < policy_.wanted_workers(); benched_.pop_back()) {
        policy_.begin();
        workers_[benched_.back()].state = WorkerState::waking;
        time_.wait(benched_.back(), options_.costs.wake_ns);
    }
}

bool ReplayLoader::claim(Worker& worker) {
    if (!work_is_open())
        return false;
    const std::uint32_t slot = slot_of_[current_ % slot_of_.size()];
    Slot& s = slots_[slot];
    const std::uint32_t count = std::min(policy_.claim_size(), s.size - s.next);
    if (s.next == 0)
        s.row.first_claim_ns = time_.now_ns();
    worker.slot = slot;
    worker.at = s.next;
    worker.end = s.next += count;
    worker.part = 0;
    worker.claimed = count;
    worker.busy_ns = 0;
    worker.measured = policy_.may_have_too_many() && worker.budget.next();
    worker.claim_ns = time_.now_ns();
    worker.state = WorkerState::making;
    if (s.next == s.size)
        ++current_;
    if (run_.collates && !s.making)
        take_samples(s);
    return true;
}

bool ReplayLoader::begin_part(std::uint32_t number, Worker& worker, bool computes, std::int64_t ns) {
    if (computes && ns > 0)
        ns += std::exchange(worker.owes_ns, 0);
    note_use(worker, computes, ns);
    if (!computes) {
        worker.waited_ns += ns;
        if (ns > 0)
            time_.wait(number, ns);
        return ns > 0;
    }
    worker.stage_cpu_ns += ns;
    if (ns > 0)
        time_.compute(number, ns);
    return ns > 0;
}

bool ReplayLoader::make(std::uint32_t number, Worker& worker) {
    Slot& s = slots_[worker.slot];
    const std::size_t last = 2 * (demands_.stage_count() + 1);
    constexpr std::size_t first_of_stages = 2;
    while (worker.at < worker.end) {
        const std::uint32_t sample = demands_.sample_at(s.position + worker.at);
        const std::int64_t* const parts = demands_.parts_of(sample);
        if (worker.part == 0) {
            worker.sample_ns = worker.bytes_ns = time_.now_ns();
            worker.waited_ns = worker.stage_cpu_ns = 0;
            worker.owes_ns += run_.overhead_ns;
            worker.read = ReplayReads::nobody;
            if (rows_)
                rows_->begin_sample(number, worker.sample_ns);
            worker.part = 1;
            if (reads_.any() && wants(sample)) {
                const auto how = reads_.take(worker.slot, worker.at, number, worker.read);
                if (how != ReplayReads::Take::own)
                    worker.part = 1 + first_of_stages;
                if (how == ReplayReads::Take::waits) {
                    worker.state = WorkerState::waiting_for_read;
                    return false;
                }
                if (how == ReplayReads::Take::ready)
                    note_read(number, worker);
            }
        }
        while (worker.part <= last) {
            const std::size_t part = worker.part++ - 1;
            if (part == first_of_stages && reads_.any() && worker.read == ReplayReads::nobody && wants(sample)) {
                worker.bytes_ns = time_.now_ns();
                reads_.read_here(number, worker.bytes_ns - worker.sample_ns,
                                 parts[0] > 0 || demands_.line_ns(sample) > 0);
            }
            if (rows_ && part > first_of_stages && part % 2 == 0)
                rows_->end_stage(number, time_.now_ns(), std::exchange(worker.stage_cpu_ns, 0));
            const std::int64_t ns = part == demands_.line_part() ? read_ns(sample, parts[part]) : parts[part];
            if (begin_part(number, worker, part % 2 == 1, ns))
                return false;
        }
        if (rows_) {
            const SampleDemand& row = demands_.sample(sample);
            rows_->end_stage(number, time_.now_ns(), worker.stage_cpu_ns);
            rows_->end_sample(number, s.row, worker.at, row.index, row.bytes, worker.waited_ns);
        }
        if (reads_.any()) {
            reads_.done(number, worker.read, time_.now_ns() - worker.bytes_ns);
            begin_reads(false);
        }
        ++worker.at;
        worker.part = 0;
    }
    worker.samples += worker.claimed;
    worker.ns += static_cast<std::uint64_t>(time_.now_ns() - worker.claim_ns);
    worker.state = WorkerState::idle;
    s.remaining -= worker.claimed;
    if (s.remaining != 0) {
        end_use(worker);
        return true;
    }
    s.row.last_done_ns = time_.now_ns();
    worker.part = 0;
    if (run_.collates)
        worker.state = WorkerState::collating;
    else
        finish(worker);
    return true;
}

bool ReplayLoader::collate(std::uint32_t number, Worker& worker) {
    Slot& s = slots_[worker.slot];
    if (worker.part == 0) {
        worker.batch = demands_.batch_at(s.position, s.size);
        s.row.collate_worker = static_cast<std::uint16_t>(number);
        s.row.collate_begin_ns = time_.now_ns();
    }
    while (worker.part < 2) {
        const bool computes = worker.part++ == 1;
        const Demand& demand = worker.batch.collate;
        if (begin_part(number, worker, computes, computes ? demand.cpu_ns : demand.wait_ns))
            return false;
    }
    s.row.collate_end_ns = time_.now_ns();
    // As CollatedBatch grows: in powers of two up to a huge page.
    const std::uint64_t bytes = worker.batch.bytes;
    s.arrays = std::max(s.arrays, slot_memory_bytes(bytes < slot_huge_page ? std::bit_ceil(bytes) : bytes, 0));
    s.making = false;
    finish(worker);
    return true;
}

void ReplayLoader::finish(Worker& worker) {
    end_use(worker);
    observe(worker);
    if (policy_.counts_bytes())
        count_bytes();
    worker.owes_ns += options_.costs.hand_over_ns;
    worker.state = WorkerState::idle;
    policy_.complete(worker.slot, false);
    turn(false);
}

// ---------------------------------------------------------------------------------------------- reads

std::int64_t ReplayLoader::read_ns(std::uint32_t sample, std::int64_t latency_ns) noexcept {
    const std::int64_t passes_ns = demands_.line_ns(sample), now = time_.now_ns();
    if (passes_ns <= 0)
        return latency_ns;
    line_free_ns_ = std::max(now + latency_ns, line_free_ns_) + passes_ns;
    return line_free_ns_ - now;
}

bool ReplayLoader::wants(std::uint32_t sample) const noexcept {
    const Demand& read = demands_.sample(sample).read;
    return read.cpu_ns != 0 || read.wait_ns != 0;
}

void ReplayLoader::note_read(std::uint32_t number, Worker& worker) {
    worker.bytes_ns = time_.now_ns();
    const ReplayReads::Read& read = reads_.read(worker.read);
    if (rows_)
        rows_->read_ahead(number, read.begin_ns, read.end_ns);
}

void ReplayLoader::begin_reads(bool running) {
    const auto first = static_cast<std::uint32_t>(workers_.size()) + 1;
    const auto wanted = [this](std::uint32_t slot, std::uint32_t at) {
        return wants(demands_.sample_at(slots_[slot].position + at));
    };
    std::int64_t wake_ns = running ? 0 : options_.costs.wake_ns;   // the reader that calls runs already
    while (const auto read = reads_.begin_next(running, time_.now_ns() + wake_ns, wanted)) {
        running = true;   // one that runs goes on until enough is held
        reader_parts_[*read] = 0;
        time_.wait(first + *read, std::exchange(wake_ns, options_.costs.wake_ns));
    }
}

void ReplayLoader::step_reader(std::uint32_t number) {
    const ReplayReads::Read& read = reads_.read(number);
    const std::uint32_t sample = demands_.sample_at(slots_[read.slot].position + read.at);
    const std::int64_t* const parts = demands_.parts_of(sample);
    const auto entity = static_cast<std::uint32_t>(workers_.size()) + 1 + number;
    while (reader_parts_[number] < 2) {
        const std::uint32_t part = reader_parts_[number]++;
        const std::int64_t ns = part == 0 ? read_ns(sample, parts[part]) : parts[part];
        if (ns > 0)
            return part == 0 ? time_.wait(entity, ns) : time_.compute(entity, ns);
    }
    const std::uint32_t waiter =
        reads_.end(number, time_.now_ns(), parts[0] > 0 || demands_.line_ns(sample) > 0, demands_.sample(sample).bytes);
    begin_reads(true);
    if (waiter != ReplayReads::nobody)
        time_.wait(waiter, options_.costs.wake_ns);
}

}   // namespace drawpoint
