#include "diagnosis/replay/replay_reads.hpp"

#include <algorithm>
#include <utility>

#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>

namespace drawpoint {
namespace {

std::uint64_t unsigned_ns(std::int64_t ns) noexcept {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
}

}   // namespace

ReplayReads::ReplayReads(std::size_t concurrency, std::size_t num_workers, std::size_t batch_size, std::uint64_t memory)
    : concurrency_{concurrency}, batch_size_{batch_size}, machine_{concurrency, concurrency, num_workers, memory} {
    if (concurrency == 0)
        return;
    cells_.resize(LoaderPolicy::max_slots * batch_size, taken);
    reads_.resize(ReadPolicy::most_held(concurrency) + concurrency);
    counted_.resize(reads_.size(), 0);
    for (std::size_t i = reads_.size(); i-- > 0;)
        free_.push_back(static_cast<std::uint32_t>(i));
    workers_.resize(std::max<std::size_t>(num_workers, 1));
    machine_.sleeps();   // one reader, like that of io_uring: it can have any number of reads in flight
}

void ReplayReads::want(std::uint32_t slot, std::uint32_t size) noexcept {
    for (std::uint32_t at = 0; at < size; ++at)
        cell(slot, at) = idle;
    // A slot is reused only after all samples of its batch were taken: the reads that it still has are not needed.
    machine_.withdraw(slot, 0);
    machine_.want(slot, size);
}

bool ReplayReads::calls_reader() noexcept {
    if (machine_.act(next_buffer()) != ReadMachine::Act::wake)
        return false;
    machine_.awake();
    machine_.sleeps();   // again, after it has begun the reads there are
    return true;
}

std::uint32_t ReplayReads::end(std::uint32_t number, std::int64_t now_ns, bool blocked, std::uint64_t bytes) noexcept {
    Read& read = reads_[number];
    read.end_ns = now_ns;
    const std::uint64_t ns = unsigned_ns(now_ns - read.begin_ns);
    const std::uint64_t touched = std::max(counted_[number], contents_memory_bytes(bytes));
    machine_.ended(ns, blocked, false, touched - std::exchange(counted_[number], touched));
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
    if (workers_[number].looks())
        workers_[number].looked(unsigned_ns(ns), blocked);
}

void ReplayReads::done(std::uint32_t number, std::uint32_t read, std::int64_t made_ns) noexcept {
    ReadReporter& worker = workers_[number];
    worker.made(unsigned_ns(made_ns));
    if (read == nobody && !worker.is_due())
        return;
    machine_.observe(worker.take());
    if (read == nobody)
        return;
    if (machine_.put_back())
        machine_.gave_up(std::exchange(counted_[read], 0));
    free_.push_back(read);
}

}   // namespace drawpoint
