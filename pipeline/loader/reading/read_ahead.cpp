#include "pipeline/loader/reading/read_ahead.hpp"

#include <algorithm>
#include <utility>

#include <sys/resource.h>
#include <time.h>

#include "pipeline/loader/reading/read_cell.hpp"
#include "pipeline/loader/reading/read_ring.hpp"
#include "pipeline/loader/reading/read_threads.hpp"
#include "pipeline/storage/regular_file.hpp"

namespace drawpoint {

namespace {

constexpr std::int64_t quick_ns = 100'000;   // where switches are not counted: shorter reads did not wait

bool system_counts_switches() noexcept {
    for (const long ns : {1L, 100'000L}) {   // with a small timer slack, the first may end before the core is left
        const long before = voluntary_switches();
        const timespec moment{0, ns};
        ::nanosleep(&moment, nullptr);
        if (voluntary_switches() != before)
            return true;
    }
    return false;
}

/// Each has a file open.
std::size_t most_reads(std::size_t wanted) noexcept {
    return std::min(wanted, std::max<std::size_t>(most_open_files(), 1));
}

}   // namespace

long voluntary_switches() noexcept {
    rusage usage{};
    return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

ReadAhead::ReadAhead(const SampleSource& source, const SampleReads& reads, const ReadAheadOptions& options,
                     const AnyClock& clock)
    : reads_{&reads},
      source_size_{source.size()},
      options_{options},
      clock_{clock},
      most_{options.concurrency == 0 ? 0 : most_reads(std::max(options.concurrency, options.most_concurrency))},
      counts_switches_{system_counts_switches()},
      retried_{reads, options.rules},
      machine_{std::min(options.concurrency, most_), most_, options.num_workers, options.memory} {
    if (most_ == 0)
        return;
    prepare_slots(options_.slots);
    // `most_` extra buffers: readers stuck beyond the deadline keep theirs.
    const std::size_t count = ReadPolicy::most_held(most_) + most_;
    buffers_ = std::make_unique<ReadBuffer[]>(count);
    free_.reserve(count);
    for (std::size_t i = count; i-- > 0;) {
        buffers_[i].number = static_cast<std::uint32_t>(i);
        free_.push_back(static_cast<std::uint32_t>(i));
    }
}

ReadAhead::~ReadAhead() { join(); }

void ReadAhead::prepare_slots(std::size_t slots) {
    for (std::size_t i = 0; most_ != 0 && i < slots; ++i)
        if (!cells_[i])
            cells_[i] = std::make_unique<std::atomic<std::uint32_t>[]>(options_.batch_size);
}

void ReadAhead::retarget(std::size_t concurrency, std::size_t num_workers, std::uint64_t memory) noexcept {
    Act then;
    {
        const std::lock_guard lock{mutex_};
        machine_.retarget(std::min(concurrency, most_), num_workers, memory);
        for (std::size_t i = 0; i < free_.size() && machine_.exceeds_memory(); ++i)   // the next to be used last
            give_up(buffers_[free_[i]]);
        then = act();
    }
    perform(then);
}

// ---------------------------------------------------------------------------------------------- what is wanted

ReadAhead::Act ReadAhead::want(std::uint32_t slot, std::span<const std::uint64_t> indices) noexcept {
    if (most_ == 0)
        return Act::none;
    const std::lock_guard lock{mutex_};
    const auto size = static_cast<std::uint32_t>(indices.size());
    for (std::uint32_t at = 0; at < size; ++at)
        cell(slot, at).store(cell_value(ReadState::idle), std::memory_order_relaxed);   // published with the batch
    indices_[slot] = indices.data();
    machine_.want(slot, size);
    return act();
}

void ReadAhead::withdraw(std::uint32_t slot, std::uint32_t first) noexcept {
    if (most_ == 0)
        return;
    const std::lock_guard lock{mutex_};
    machine_.withdraw(slot, first);
    for (std::uint32_t at = first; at < options_.batch_size; ++at) {
        const std::uint32_t before = cell(slot, at).exchange(cell_value(ReadState::taken), std::memory_order_acq_rel);
        if (state_of(before) == ReadState::ready)
            put_back(buffers_[buffer_of(before)]);
    }
}

// ---------------------------------------------------------------------------------------------- buffers

ReadMachine::Buffer ReadAhead::next_buffer() const noexcept {
    return {!free_.empty(), !free_.empty() && buffers_[free_.back()].counted_bytes != 0};
}

void ReadAhead::give_up(ReadBuffer& buffer) noexcept {
    std::vector<std::byte>{}.swap(buffer.bytes);
    machine_.gave_up(std::exchange(buffer.counted_bytes, 0));
}

void ReadAhead::put_back(ReadBuffer& buffer) noexcept {
    if (machine_.put_back())
        give_up(buffer);
    buffer.error = nullptr;
    free_.push_back(buffer.number);
}

// ---------------------------------------------------------------------------------------------- more readers

// Under the mutex: a reader that announces sleep later is seen by the next act().
ReadAhead::Act ReadAhead::act() noexcept { return machine_.act(next_buffer()); }

void ReadAhead::perform(Act what) noexcept {
    if (what == Act::none)
        return;
    if (what == Act::wake) {
        called_.notify_one();
        return wake_readers();
    }
    bool grown = false;
    try {
        const std::lock_guard lock{start_mutex_};
        grown = !stopping() && readers().grow();
    } catch (...) {
        grown = false;   // out of memory: the workers read for themselves
    }
    const std::lock_guard lock{mutex_};
    if (!grown)
        machine_.not_started();
}

Readers& ReadAhead::readers() {
    if (!readers_) {
        if (options_.io_uring && source_size_ != 0 && reads_->location(0))
            readers_ = make_read_ring(*this);
        if (!readers_)
            readers_ = std::make_unique<ReadThreads>(*this);
    }
    return *readers_;
}

void ReadAhead::wake_readers() noexcept {
    const std::lock_guard lock{start_mutex_};
    if (readers_)
        readers_->wake();
}

// ---------------------------------------------------------------------------------------------- the end

void ReadAhead::stop() noexcept {
    {
        const std::lock_guard lock{mutex_};
        if (stopping_.exchange(true, std::memory_order_relaxed))
            return;
        machine_.stop();
    }
    called_.notify_all();
    retried_.stop();
    for (std::size_t i = 0; i < free_.capacity(); ++i) {
        const std::lock_guard lock{buffers_[i].mutex};
        buffers_[i].arrived.notify_all();
    }
    wake_readers();
}

void ReadAhead::join() noexcept {
    stop();
    Readers* readers;
    {
        const std::lock_guard lock{start_mutex_};   // from here on nobody starts any
        readers = readers_.get();
    }
    if (readers != nullptr)
        readers->join();
}

// ---------------------------------------------------------------------------------------------- measurements

bool ReadAhead::has_blocked(std::int64_t ns, long switches) const noexcept {
    return counts_switches_ ? switches != 0 : ns > quick_ns;
}

ReadAheadCounters ReadAhead::counters() const noexcept {
    const std::lock_guard lock{mutex_};
    return {.ahead = ahead_,
            .own = own_,
            .late = late_,
            .retries = retried_.retries(),
            .readers = machine_.started(),
            .bytes = machine_.bytes(),
            .most_bytes = machine_.most_bytes(),
            .most_held = machine_.most_held()};
}

}   // namespace drawpoint
