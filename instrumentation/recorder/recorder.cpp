#include <drawpoint/instrumentation/recorder/recorder.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "instrumentation/recorder/recorder_impl.hpp"

namespace drawpoint {

namespace {

constexpr std::size_t most_text_bytes = 1u << 20;

/// The text, cut to the mebibyte that a recording keeps at most.
std::string_view bounded(std::string_view text) noexcept { return text.substr(0, most_text_bytes); }

/// `name`, or the first "name (2)", "name (3)", … that is not taken: the keys of facts about a loader contain its
/// name. `taken`: names, and the last number tried of each.
std::string unused_name(std::unordered_map<std::string, unsigned>& taken, const std::string& name) {
    std::string unused = name;
    while (!taken.try_emplace(unused, 1).second)
        unused = name + " (" + std::to_string(++taken[name]) + ")";
    return unused;
}

}   // namespace

Recorder::Recorder(const RecorderOptions& options, const AnyClock& clock)
    : clock_{clock}, impl_{std::make_unique<Impl>(nullptr, options, clock)} {}

Recorder::Recorder(const std::filesystem::path& file, const RecorderOptions& options, const AnyClock& clock)
    : clock_{clock}, impl_{std::make_unique<Impl>(&file, options, clock)} {}

Recorder::~Recorder() {
    finish();
    if (impl_->fork.is_forked())
        (void)impl_.release();   // its writer thread is not here
}

std::uint16_t Recorder::add_pipeline(const PipelineRow& row) {
    const std::lock_guard lock{impl_->mutex};
    if (impl_->pipelines.size() > std::numeric_limits<std::uint16_t>::max())
        throw std::length_error("a recording names at most 65536 loaders");
    PipelineRow named = row;
    named.name = unused_name(impl_->pipeline_names, row.name);
    impl_->pipelines.push_back(named.name);
    try {
        impl_->rare.emplace_back(std::move(named));
    } catch (...) {
        impl_->pipelines.pop_back();
        throw;
    }
    return static_cast<std::uint16_t>(impl_->pipelines.size() - 1);
}

std::string Recorder::pipeline_name(std::uint16_t pipeline) const {
    const std::lock_guard lock{impl_->mutex};
    return impl_->pipelines.at(pipeline);
}

WorkerTrack Recorder::add_worker() {
    const std::lock_guard lock{impl_->mutex};
    for (const auto& worker : impl_->workers)
        if (!worker->in_use.exchange(true, std::memory_order_acquire))
            return WorkerTrack{worker.get()};
    if (impl_->workers.size() > std::numeric_limits<std::uint16_t>::max())
        throw std::length_error("a recording has at most 65536 workers");
    const auto number = static_cast<std::uint16_t>(impl_->workers.size());
    impl_->workers.push_back(std::make_unique<WorkerTrack::Ring>(impl_->options.ring_records, number,
                                                                 impl_->options.drop_share, impl_->nudge));
    if (impl_->stop)
        impl_->workers.back()->ring.close();
    return WorkerTrack{impl_->workers.back().get()};
}

void Recorder::push(const BatchRow& row) noexcept {
    impl_->push(MessageKind::batch, row.taken_ns != no_stamp ? row.taken_ns : row.admitted_ns, row);
}

void Recorder::push(const StepRow& row, std::span<const SpanRow> spans) noexcept {
    impl_->push(MessageKind::step, row.draw_begin_ns, row, spans);
}

void Recorder::push(const PassRow& row, std::span<const SpanRow> spans) noexcept {
    impl_->push(MessageKind::pass, row.end_ns, row, spans);
}

void Recorder::push_begin(const PassRow& row) noexcept { impl_->push(MessageKind::pass_begin, row.begin_ns, row); }

void Recorder::push(const EndOfDataRow& row) noexcept { impl_->push(MessageKind::end_of_data, row.begin_ns, row); }

void Recorder::push(const TransferRow& row) noexcept { impl_->push(MessageKind::transfer, row.end_ns, row); }

void Recorder::push(const DeviceStepRow& row) noexcept { impl_->push(MessageKind::device_step, row.end_ns, row); }

void Recorder::push(const OrderRow& row) noexcept { impl_->push(MessageKind::order, row.begin_ns, row); }

std::uint32_t Recorder::begin_operator(const OperatorBegin& begin) noexcept {
    return begin_operator(begin, clock_.now_ns());
}

std::uint32_t Recorder::begin_operator(const OperatorBegin& begin, std::int64_t at_ns) noexcept {
    ThreadRing* const mine = impl_->thread_rings.mine();
    if (mine == nullptr)
        return 0;
    const std::uint32_t ticket = mine->next_ticket();
    if (!impl_->push(*mine, MessageKind::operator_begin, at_ns, BegunOperator{at_ns, ticket, mine->thread, begin},
                     mine->fresh))
        return 0;
    mine->fresh = false;
    return ticket;
}

void Recorder::end_operator(std::uint32_t ticket) noexcept { end_operator(ticket, clock_.now_ns()); }

void Recorder::end_operator(std::uint32_t ticket, std::int64_t at_ns) noexcept {
    ThreadRing* const mine = ticket != 0 ? impl_->thread_rings.mine(ThreadRing::number_of(ticket)) : nullptr;
    if (mine != nullptr)
        impl_->push(*mine, MessageKind::operator_end, at_ns, EndedOperator{at_ns, ticket, mine->thread});
}

void Recorder::push(AllocationRow row) noexcept {
    if (ThreadRing* const mine = impl_->thread_rings.mine()) {
        row.thread = mine->thread;
        impl_->push(*mine, MessageKind::allocation, row.at_ns, row);
    }
}

void Recorder::push(const StackSampleRow& row) noexcept {
    if (ThreadRing* const mine = impl_->thread_rings.mine())
        impl_->push(*mine, MessageKind::stack_sample, row.at_ns, row);
}

std::uint32_t Recorder::add_name(std::string_view name) noexcept { return impl_->definitions.add_name(bounded(name)); }

std::uint32_t Recorder::add_thread(const ThreadRow& row) noexcept { return impl_->definitions.add_thread(row); }

std::uint32_t Recorder::add_this_thread(std::string_view name) noexcept {
    return impl_->definitions.add_this_thread(bounded(name));
}

std::uint32_t Recorder::add_frame(const FrameRow& row) noexcept { return impl_->definitions.add_frame(row); }

std::uint32_t Recorder::add_stack(const StackRow& row) noexcept { return impl_->definitions.add_stack(row); }

void Recorder::add_setting(const SettingRow& row) noexcept {
    const std::lock_guard lock{impl_->mutex};
    try {
        if (impl_->stop)
            throw std::length_error("finished");
        impl_->rare.emplace_back(row);
    } catch (...) {
        ++impl_->refused;
    }
}

void Recorder::add_failure(const FailureRow& row) noexcept {
    const std::lock_guard lock{impl_->mutex};
    try {
        if (impl_->stop)
            throw std::length_error("finished");
        FailureRow kept{row.index, row.epoch, row.batch, row.pipeline, {}, {}, {}};
        kept.path = bounded(row.path);
        kept.stage = bounded(row.stage);
        kept.message = bounded(row.message);
        impl_->rare.emplace_back(std::move(kept));
    } catch (...) {
        ++impl_->refused;
    }
}

void Recorder::add_samples(PackedSamples packed) noexcept {
    constexpr std::uint64_t most_bytes = 64u << 20;
    const std::lock_guard lock{impl_->mutex};
    const std::uint64_t bytes = packed.bytes.size();
    try {
        if (impl_->stop || impl_->packed_bytes + bytes > most_bytes)
            throw std::length_error("finished, or too many");
        impl_->rare.emplace_back(std::move(packed));
        impl_->packed_bytes += bytes;
    } catch (...) {
        unpack(packed, [&](const SampleRecord& lost) {
            merge(impl_->packed_drops, {1, lost.row.begin_ns, lost.row.begin_ns});
            ++impl_->refused;
        });
        impl_->packed_ring = packed.worker + 1u;
    }
}

void Recorder::add_child(std::int64_t process_id) noexcept {
    const std::lock_guard lock{impl_->mutex};
    try {
        impl_->new_children.push_back(process_id);
    } catch (...) {   // its CPU time is then that of others
    }
}

void Recorder::set_fact(std::string_view key, std::string_view value) noexcept {
    const std::lock_guard lock{impl_->mutex};
    try {
        if (impl_->stop)
            throw std::length_error("finished");
        impl_->rare.emplace_back(Fact{bounded(key), bounded(value)});
    } catch (...) {
        ++impl_->refused;
    }
}

Ledger Recorder::ledger() {
    if (impl_->fork.is_forked())
        return {};
    {
        std::unique_lock lock{impl_->mutex};
        const std::uint64_t mine = ++impl_->flush_asked;
        impl_->nudge.wake.notify_one();
        impl_->flushed.wait(lock, [&] { return impl_->finished || impl_->flush_done >= mine; });
    }
    const std::lock_guard lock{impl_->ledger_mutex};
    return impl_->sink.ledger();
}

void Recorder::finish() noexcept {
    if (impl_->fork.is_forked())
        return;
    const std::lock_guard once{impl_->finish_mutex};
    if (!impl_->thread.joinable())
        return;
    {
        const std::lock_guard lock{impl_->mutex};
        impl_->stop = true;
        impl_->nudge.wake.notify_one();
    }
    impl_->thread.join();
}

RecordingState Recorder::state() {
    const std::lock_guard lock{impl_->mutex};
    RecordingState state = impl_->status;
    state.dropped = impl_->loop_ring.dropped() + impl_->thrown_away + impl_->refused;
    for (const auto& worker : impl_->workers)
        state.dropped += worker->ring.dropped();
    state.dropped += impl_->thread_rings.dropped() + impl_->thread_rings.refused();
    return state;
}

// ---- WorkerTrack ----

WorkerTrack::WorkerTrack(WorkerTrack&& other) noexcept : ring_{std::exchange(other.ring_, nullptr)} {}

WorkerTrack& WorkerTrack::operator=(WorkerTrack&& other) noexcept {
    if (this != &other) {
        if (ring_ != nullptr)
            ring_->in_use.store(false, std::memory_order_release);
        ring_ = std::exchange(other.ring_, nullptr);
    }
    return *this;
}

WorkerTrack::~WorkerTrack() {
    if (ring_ != nullptr)
        ring_->in_use.store(false, std::memory_order_release);
}

void WorkerTrack::push(SampleRecord& record) noexcept {
    if (ring_ == nullptr)
        return;
    record.row.worker = ring_->worker;
    if (ring_->drop_share > 0.0) {
        ring_->owed += ring_->drop_share;
        if (ring_->owed >= 1.0) {
            ring_->owed -= 1.0;
            ring_->ring.count_drop(record.row.begin_ns);
            return;
        }
    }
    push_sample(ring_->ring, record);
    if (ring_->ring.fuller_than(ring_->ring.capacity() / 2)) [[unlikely]]
        (*ring_->nudge)();
}

void WorkerTrack::push_collate(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    // A worker's ring counts dropped samples; this is only for display, so it is left out rather than dropped.
    static_assert(sizeof(MessageHeader) + sizeof(CollateSlice) <= drawpoint::Ring::record_bytes);
    if (ring_ != nullptr && !ring_->ring.fuller_than(ring_->ring.capacity() - 1))
        push_message(ring_->ring, MessageKind::collate, begin_ns, CollateSlice{begin_ns, end_ns, ring_->worker});
}

void WorkerTrack::push(OrderRow row) noexcept {
    if (ring_ == nullptr)
        return;
    row.worker = ring_->worker;
    push_message(ring_->ring, MessageKind::order, row.begin_ns, row);
}

std::uint16_t WorkerTrack::worker() const noexcept { return ring_ != nullptr ? ring_->worker : std::uint16_t{0}; }

}   // namespace drawpoint
