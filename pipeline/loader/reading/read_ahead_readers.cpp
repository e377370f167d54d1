// ReadAhead's part for the readers: which sample they read next, and the end of a read.
#include "pipeline/loader/reading/read_ahead.hpp"

#include <algorithm>
#include <utility>

#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>

#include "pipeline/loader/reading/read_cell.hpp"

namespace drawpoint {

ReadBuffer* ReadAhead::claim_next() noexcept {
    if (!machine_.goes_on(next_buffer()))
        return nullptr;
    ReadBuffer& buffer = buffers_[free_.back()];
    while (const std::optional<ReadMachine::Place> place = machine_.next()) {
        const std::uint64_t index = indices_[place->slot][place->at];
        if (index >= source_size_ || !reads_->wants(index))
            continue;   // the worker reports the bad index, or needs no bytes
        buffer.index = index;
        buffer.cell = &cell(place->slot, place->at);
        buffer.times = {.begin_ns = clock_.now_ns()};
        if (options_.rules.deadline.count() > 0)
            buffer.due = std::chrono::steady_clock::now() + options_.rules.deadline;
        std::uint32_t before = cell_value(ReadState::idle);
        if (!buffer.cell->compare_exchange_strong(before, cell_value(ReadState::reading, buffer.number),
                                                  std::memory_order_acq_rel))
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
    const std::uint32_t ready = cell_value(ReadState::ready, buffer.number);
    bool somebody_waits = false;
    {
        const std::lock_guard lock{mutex_};
        const std::uint64_t touched = std::max(buffer.counted_bytes, contents_memory_bytes(buffer.bytes.size()));
        ++ahead_;
        machine_.ended(ns, buffer.blocked, buffer.late.exchange(false, std::memory_order_relaxed),
                       touched - std::exchange(buffer.counted_bytes, touched));
        std::uint32_t before = cell_value(ReadState::reading, buffer.number);
        if (!buffer.cell->compare_exchange_strong(before, ready, std::memory_order_acq_rel)) {
            somebody_waits = before == cell_value(ReadState::waited_for, buffer.number) &&
                             buffer.cell->compare_exchange_strong(before, ready, std::memory_order_acq_rel);
            if (!somebody_waits)
                put_back(buffer);   // its worker gave up, or its batch was withdrawn
        }
    }
    if (somebody_waits) {
        const std::lock_guard lock{buffer.mutex};
        buffer.arrived.notify_one();
    }
}

}   // namespace drawpoint
