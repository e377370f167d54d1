// The simulated loader: reads, ahead of the workers and by them.
#include <algorithm>
#include <utility>

#include "diagnosis/replay/replay_loader.hpp"

namespace drawpoint {

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
    std::int64_t wake_ns = running ? 0 : read_wake_ns_;   // a reader that runs needs no waking
    while (const auto read = reads_.begin_next(running, time_.now_ns() + wake_ns, wanted)) {
        running = true;   // it goes on until enough is held
        reader_phases_[*read] = Phase::waits;
        time_.wait(first + *read, std::exchange(wake_ns, read_wake_ns_));
    }
}

void ReplayLoader::step_reader(std::uint32_t number) {
    const ReplayReads::Read& read = reads_.read(number);
    const std::uint32_t sample = demands_.sample_at(slots_[read.slot].position + read.at);
    const Demand& demand = demands_.pieces_of(sample)[0];
    const auto entity = static_cast<std::uint32_t>(workers_.size()) + 1 + number;
    Phase& phase = reader_phases_[number];
    if (phase == Phase::waits) {
        phase = Phase::computes;
        if (const std::int64_t ns = read_ns(sample, demand.wait_ns); ns > 0)
            return time_.wait(entity, ns);
    }
    if (phase == Phase::computes) {
        phase = Phase::ends;
        if (demand.cpu_ns > 0)
            return time_.compute(entity, demand.cpu_ns);
    }
    const std::uint32_t waiter = reads_.end(number, time_.now_ns(), demand.wait_ns > 0 || demands_.line_ns(sample) > 0,
                                            demands_.sample(sample).bytes);
    begin_reads(true);
    if (waiter != ReplayReads::nobody)
        time_.wait(waiter, read_wake_ns_);
}

}   // namespace drawpoint
