#include "diagnosis/replay/replay_reads.hpp"

#include <algorithm>
#include <utility>

#include <drawpoint/pipeline/loader/machine/slot_bytes.hpp>

namespace drawpoint {
namespace {

// As in pipeline/read_ahead.cpp.
constexpr std::uint64_t look_at_every = 4, report_after = 8, report_at_once_ns = 200'000;

std::uint64_t unsigned_ns(std::int64_t ns) noexcept {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
}

}   // namespace

ReplayReads::ReplayReads(std::size_t concurrency, std::size_t num_workers, std::size_t batch_size, std::uint64_t memory)
    : concurrency_{concurrency}, batch_size_{batch_size}, policy_{concurrency, num_workers}, memory_{memory} {
    if (concurrency == 0)
        return;
    cells_.resize(LoaderPolicy::max_slots * batch_size, taken);
    reads_.resize(ReadPolicy::most_held(concurrency) + concurrency);
    counted_.resize(reads_.size(), 0);
    for (std::size_t i = reads_.size(); i-- > 0;)
        free_.push_back(static_cast<std::uint32_t>(i));
    workers_.resize(std::max<std::size_t>(num_workers, 1));
}

void ReplayReads::want(std::uint32_t slot, std::uint32_t size) noexcept {
    for (std::uint32_t at = 0; at < size; ++at)
        cell(slot, at) = idle;
    // A slot is used again only once all samples of its batch were taken: what is left of it here is nobody's.
    const auto end = wanted_.begin() + static_cast<std::ptrdiff_t>(wanted_count_);
    const auto left = std::remove_if(wanted_.begin(), end, [slot](const Wanted& one) { return one.slot == slot; });
    wanted_count_ -= static_cast<std::size_t>(end - left);
    wanted_[wanted_count_++] = {.slot = slot, .next = 0, .size = size};
}

std::uint32_t ReplayReads::end(std::uint32_t number, std::int64_t now_ns, bool blocked, std::uint64_t bytes) noexcept {
    Read& read = reads_[number];
    read.end_ns = now_ns;
    const std::uint64_t ns = unsigned_ns(now_ns - read.begin_ns);
    const std::uint64_t touched = std::max(counted_[number], contents_memory_bytes(bytes));
    bytes_ += touched - std::exchange(counted_[number], touched);
    policy_.observe_reads(1, ns, blocked ? ns : 0);
    --active_;
    if (read.waiter == nobody)
        cell(read.slot, read.at) = number << 2 | ready;
    return read.waiter;
}

ReplayReads::Take ReplayReads::take(std::uint32_t slot, std::uint32_t at, std::uint32_t worker,
                                    std::uint32_t& read) noexcept {
    const std::uint32_t before = std::exchange(cell(slot, at), std::uint32_t{taken});
    read = nobody;
    if ((before & 3) == idle || (before & 3) == taken)
        return Take::own;
    read = before >> 2;
    if ((before & 3) == ready)
        return Take::ready;
    reads_[read].waiter = worker;
    return Take::waits;
}

void ReplayReads::read_here(std::uint32_t number, std::int64_t ns, bool blocked) noexcept {
    Worker& worker = workers_[number];
    if (!worker.blocked && worker.reads++ % look_at_every != 0)
        return;
    worker.blocked = blocked;
    ++worker.looked_at;
    worker.looked_at_ns += unsigned_ns(ns);
    worker.blocked_ns += blocked ? unsigned_ns(ns) : 0;
}

void ReplayReads::done(std::uint32_t number, std::uint32_t read, std::int64_t made_ns) noexcept {
    Worker& worker = workers_[number];
    ++worker.samples;
    worker.sample_ns += unsigned_ns(made_ns);
    if (read == nobody && worker.samples < report_after && worker.blocked_ns < report_at_once_ns)
        return;
    policy_.observe_reads(std::exchange(worker.looked_at, 0), std::exchange(worker.looked_at_ns, 0),
                          std::exchange(worker.blocked_ns, 0));
    policy_.observe_samples(std::exchange(worker.samples, 0), std::exchange(worker.sample_ns, 0));
    if (read == nobody)
        return;
    free_.push_back(read);
    --held_;
}

}   // namespace drawpoint
