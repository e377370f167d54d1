#include "pipeline/loader/reading/read_ahead.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <sys/resource.h>
#include <time.h>

#include "pipeline/loader/reading/read_ring.hpp"
#include "pipeline/loader/reading/read_threads.hpp"
#include <drawpoint/pipeline/loader/machine/slot_bytes.hpp>

namespace drawpoint {

namespace {

enum State : std::uint32_t { idle, taken, reading, waited_for, ready };

constexpr std::uint32_t word(State state, std::uint32_t buffer) noexcept { return buffer << 3 | state; }
constexpr std::uint32_t word(State state, const ReadBuffer& buffer) noexcept { return word(state, buffer.number); }
constexpr State state_of(std::uint32_t cell) noexcept { return static_cast<State>(cell & 7); }

constexpr std::int64_t quick_ns = 100'000;   // where waiting cannot be seen, a read so short has not waited

}   // namespace

long voluntary_switches() noexcept {
    rusage usage{};
    return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

namespace {

bool system_counts_switches() noexcept {
    const long before = voluntary_switches();
    const timespec moment{0, 1};
    ::nanosleep(&moment, nullptr);
    return voluntary_switches() != before;
}

}   // namespace

ReadAhead::ReadAhead(const SampleSource& source, const SampleReads& reads, const ReadAheadOptions& options,
                     const AnyClock& clock)
    : reads_{&reads},
      source_size_{source.size()},
      options_{options},
      clock_{clock},
      most_{options.concurrency == 0 ? 0 : std::max(options.concurrency, options.most_concurrency)},
      counts_switches_{system_counts_switches()},
      retried_{reads, options.rules},
      machine_{options.concurrency, most_, options.num_workers, options.memory} {
    if (most_ == 0)
        return;
    prepare_slots(options_.slots);
    // As many again: readers stuck beyond the deadline keep theirs.
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
        machine_.retarget(concurrency, num_workers, memory);
        for (std::size_t i = 0; i < free_.size() && machine_.exceeds_memory(); ++i)   // the next to be used last
            give_up(buffers_[free_[i]]);
        then = act();
    }
    perform(then);
}

// ---------------------------------------------------------------------------------------------- what is wanted

void ReadAhead::want(std::uint32_t slot, std::span<const std::uint64_t> indices) noexcept {
    if (most_ == 0)
        return;
    Act then;
    {
        const std::lock_guard lock{mutex_};
        const auto size = static_cast<std::uint32_t>(indices.size());
        for (std::uint32_t at = 0; at < size; ++at)
            cell(slot, at).store(word(idle, 0), std::memory_order_relaxed);   // seen by the claim's release
        indices_[slot] = indices.data();
        machine_.want(slot, size);
        then = act();
    }
    perform(then);
}

void ReadAhead::withdraw(std::uint32_t slot, std::uint32_t first) noexcept {
    if (most_ == 0)
        return;
    const std::lock_guard lock{mutex_};
    machine_.withdraw(slot, first);
    for (std::uint32_t at = first; at < options_.batch_size; ++at) {
        const std::uint32_t before = cell(slot, at).exchange(word(taken, 0), std::memory_order_acq_rel);
        if (state_of(before) == ready)
            put_back(buffers_[before >> 3]);
    }
}

// ---------------------------------------------------------------------------------------------- readers

ReadMachine::Buffer ReadAhead::next_buffer() const noexcept {
    return {!free_.empty(), !free_.empty() && buffers_[free_.back()].counted_bytes != 0};
}

ReadBuffer* ReadAhead::claim_next() noexcept {
    if (!machine_.goes_on(next_buffer()))
        return nullptr;
    ReadBuffer& buffer = buffers_[free_.back()];
    while (const std::optional<ReadMachine::Place> place = machine_.next()) {
        const std::uint64_t index = indices_[place->slot][place->at];
        if (index >= source_size_ || !reads_->wants(index))
            continue;   // the worker's to say so
        buffer.index = index;
        buffer.cell = &cell(place->slot, place->at);
        buffer.times = {.begin_ns = clock_.now_ns()};
        if (options_.rules.deadline.count() > 0)
            buffer.due = std::chrono::steady_clock::now() + options_.rules.deadline;
        std::uint32_t before = word(idle, 0);
        if (!buffer.cell->compare_exchange_strong(before, word(reading, buffer), std::memory_order_acq_rel))
            continue;
        free_.pop_back();
        machine_.begun();
        return &buffer;
    }
    return nullptr;
}

ReadBuffer* ReadAhead::next_read(Idle how, bool slept) noexcept {
    ReadBuffer* buffer = nullptr;
    Act then = Act::none;
    {
        Lock lock{mutex_};
        if (slept)
            machine_.awake();
        while ((buffer = claim_next()) == nullptr && how == Idle::blocks && !stopping()) {
            machine_.sleeps();
            called_.wait(lock, [this] { return machine_.is_called() || stopping(); });
            machine_.awake();
        }
        if (buffer == nullptr && how == Idle::sleeps)
            machine_.sleeps();
        if (buffer != nullptr && how == Idle::blocks)
            then = act();
    }
    perform(then);
    return buffer;
}

void ReadAhead::end_read(ReadBuffer& buffer) noexcept {
    const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(buffer.times.end_ns - buffer.times.begin_ns, 0));
    bool somebody_waits = false;
    {
        const std::lock_guard lock{mutex_};
        const std::uint64_t touched = std::max(buffer.counted_bytes, contents_memory_bytes(buffer.bytes.size()));
        ++ahead_;
        machine_.ended(ns, buffer.blocked, buffer.late.exchange(false, std::memory_order_relaxed),
                       touched - std::exchange(buffer.counted_bytes, touched));
        std::uint32_t before = word(reading, buffer);
        if (!buffer.cell->compare_exchange_strong(before, word(ready, buffer), std::memory_order_acq_rel)) {
            somebody_waits =
                before == word(waited_for, buffer) &&
                buffer.cell->compare_exchange_strong(before, word(ready, buffer), std::memory_order_acq_rel);
            if (!somebody_waits)
                put_back(buffer);   // given up, or its batch was
        }
    }
    if (somebody_waits) {
        const std::lock_guard lock{buffer.mutex};
        buffer.arrived.notify_one();
    }
}

// Under the mutex, so that whoever announces sleep afterwards is seen by the next.
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
        grown = false;   // no memory for it: the workers read for themselves
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

bool ReadAhead::has_blocked(std::int64_t ns, long switches) const noexcept {
    return counts_switches_ ? switches != 0 : ns > quick_ns;
}

// ---------------------------------------------------------------------------------------------- workers

ReadBuffer* ReadAhead::take_cell(std::atomic<std::uint32_t>& cell) {
    std::uint32_t seen = cell.load(std::memory_order_acquire);
    for (;;) {
        ReadBuffer& buffer = buffers_[seen >> 3];
        switch (state_of(seen)) {
        case idle:
            if (cell.compare_exchange_weak(seen, word(taken, 0), std::memory_order_acq_rel))
                return nullptr;
            continue;
        case reading:
            if (!cell.compare_exchange_weak(seen, word(waited_for, buffer), std::memory_order_acq_rel))
                continue;
            wait_for(buffer, cell);
            [[fallthrough]];
        case ready: cell.store(word(taken, 0), std::memory_order_relaxed); return &buffer;
        case taken:
        case waited_for: return nullptr;
        }
    }
}

ReadAhead::Taken ReadAhead::take(WorkerReads& worker, std::uint32_t slot, std::uint32_t at, std::uint64_t index) {
    ReadBuffer* const buffer = most_ != 0 ? take_cell(cell(slot, at)) : nullptr;
    if (buffer == nullptr) {
        if (!reads_->wants(index))
            return {};
        read_here(worker, index);
        return {.contents = &worker.own};
    }
    if (buffer->error) {
        const std::exception_ptr error = std::exchange(buffer->error, nullptr);
        done(worker, {.buffer = buffer}, -1);
        std::rethrow_exception(error);
    }
    return {.contents = &buffer->bytes, .times = buffer->times, .buffer = buffer};
}

void ReadAhead::wait_for(ReadBuffer& buffer, std::atomic<std::uint32_t>& cell) {
    {
        std::unique_lock lock{buffer.mutex};
        const auto over = [&] { return state_of(cell.load(std::memory_order_acquire)) == ready || stopping(); };
        if (options_.rules.deadline.count() > 0)
            buffer.arrived.wait_until(lock, buffer.due, over);
        else
            buffer.arrived.wait(lock, over);
    }
    Act then;
    {
        const std::lock_guard lock{mutex_};
        std::uint32_t before = word(waited_for, buffer);
        if (!cell.compare_exchange_strong(before, word(taken, 0), std::memory_order_acq_rel))
            return;   // it is there
        buffer.late.store(true, std::memory_order_relaxed);
        machine_.late();
        late_ += !stopping();
        then = act();
    }
    perform(then);
    wake_readers();
    if (stopping())
        throw std::system_error{std::make_error_code(std::errc::operation_canceled), "read"};
    throw took_too_long(options_.rules.deadline);
}

void ReadAhead::read_here(WorkerReads& worker, std::uint64_t index) {
    ++worker.unreported;
    if (most_ == 0 || !worker.reporter.looks())
        return retried_.read(index, worker.own);
    const long switches = counts_switches_ ? voluntary_switches() : 0;
    const std::int64_t begin = clock_.now_ns();
    retried_.read(index, worker.own);
    const std::int64_t ns = std::max<std::int64_t>(clock_.now_ns() - begin, 0);
    worker.reporter.looked(static_cast<std::uint64_t>(ns),
                           has_blocked(ns, counts_switches_ ? voluntary_switches() - switches : 0));
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

void ReadAhead::done(WorkerReads& worker, const Taken& sample, std::int64_t made_ns) noexcept {
    if (made_ns >= 0)
        worker.reporter.made(static_cast<std::uint64_t>(made_ns));
    if (sample.buffer == nullptr && !worker.reporter.is_due())
        return;
    Act then;
    {
        const std::lock_guard lock{mutex_};
        own_ += std::exchange(worker.unreported, 0);
        machine_.observe(worker.reporter.take());
        if (sample.buffer != nullptr)
            put_back(*sample.buffer);
        then = act();
    }
    perform(then);
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
        const std::lock_guard lock{start_mutex_};   // nobody adds to them from here on
        readers = readers_.get();
    }
    if (readers != nullptr)
        readers->join();
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
