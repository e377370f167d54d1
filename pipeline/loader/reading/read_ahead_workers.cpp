// ReadAhead's part for the workers: they take a sample's bytes, wait for them or read them themselves.
#include "pipeline/loader/reading/read_ahead.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "pipeline/loader/reading/read_cell.hpp"

namespace drawpoint {

ReadBuffer* ReadAhead::take_cell(std::atomic<std::uint32_t>& cell) {
    constexpr std::uint32_t taken = cell_value(ReadState::taken);
    std::uint32_t seen = cell.load(std::memory_order_acquire);
    for (;;) {
        ReadBuffer& buffer = buffers_[buffer_of(seen)];
        switch (state_of(seen)) {
        case ReadState::idle:
            if (cell.compare_exchange_weak(seen, taken, std::memory_order_acq_rel))
                return nullptr;
            continue;
        case ReadState::reading:
            if (!cell.compare_exchange_weak(seen, cell_value(ReadState::waited_for, buffer.number),
                                            std::memory_order_acq_rel))
                continue;
            wait_for(buffer, cell);
            [[fallthrough]];
        case ReadState::ready: cell.store(taken, std::memory_order_relaxed); return &buffer;
        case ReadState::taken:
        case ReadState::waited_for: return nullptr;
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
        const auto over = [&] {
            return state_of(cell.load(std::memory_order_acquire)) == ReadState::ready || stopping();
        };
        if (options_.rules.deadline.count() > 0)
            buffer.arrived.wait_until(lock, buffer.due, over);
        else
            buffer.arrived.wait(lock, over);
    }
    Act then;
    {
        const std::lock_guard lock{mutex_};
        std::uint32_t before = cell_value(ReadState::waited_for, buffer.number);
        if (!cell.compare_exchange_strong(before, cell_value(ReadState::taken), std::memory_order_acq_rel))
            return;   // it is ready
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

}   // namespace drawpoint
