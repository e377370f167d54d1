#include "instrumentation/recorder/message_sink.hpp"

#include <chrono>
#include <limits>
#include <string>
#include <system_error>

#include <drawpoint/instrumentation/ledger/device_time.hpp>

#include "instrumentation/recorder/write_all.hpp"

namespace drawpoint {
namespace {

constexpr std::uint64_t batch_stamps = 9;

std::uint64_t bytes_of(const Definitions& added) noexcept {
    std::uint64_t bytes = added.names.size() * sizeof(std::string) + added.threads.size() * sizeof(ThreadRow) +
                          added.frames.size() * sizeof(FrameRow) + added.stacks.size() * sizeof(StackRow);
    for (const std::string& name : added.names)
        bytes += name.size();
    return bytes;
}

// A file that is written anew begins with at most this many bytes of rows: the rings must not fill up meanwhile.
constexpr std::uint64_t most_rewritten = 12u << 20, least_rewritten = 4u << 10, least_extended = 64u << 10;
constexpr std::uint64_t last_bytes = 512;   // what may follow without a further look: the block's head, ends of slices

}   // namespace

MessageSink::MessageSink(const RecorderOptions& options, const AnyClock& clock, const StartTimes& start)
    : start_{start},
      limit_bytes_{options.limit_bytes},
      operator_limit_bytes_{options.operator_limit_bytes},
      clock_{clock},
      builder_{start.start_ns, options.ledger_steps, options.ledger_bytes},
      most_bytes_{options.limit_bytes} {
    threads_of_rings_.fill(nothing);
}

void MessageSink::open(const std::filesystem::path& file) {
    path_ = std::filesystem::absolute(file);
    writer_ = std::make_unique<TraceWriter>(file, start_);
}

void MessageSink::take(const std::byte* message) {
    if (gave_up_) {
        ++over_limit_.count;
        return;
    }
    take_row(message);
    keep_within_limit();
}

void MessageSink::keep_within_limit() {
    if (has_file() && writer_->bytes() - writer_->operator_bytes() + last_bytes > most_bytes_)
        write_anew();
}

/// Folds older rows and writes what is left into a new file, which takes the place of the present one.
void MessageSink::write_anew() {
    if (!writer_->file().is_in_place()) {   // a pipe, or a file that was moved: what is written stays written
        most_bytes_ = std::numeric_limits<std::uint64_t>::max();
        return;
    }
    std::uint64_t before = writer_->bytes() - writer_->operator_bytes();
    for (std::uint64_t rows = std::min(limit_bytes_ / 4, most_rewritten);; rows /= 4) {
        builder_.fold_to(rows);
        std::string error;
        try {
            auto anew = std::make_unique<TraceWriter>(path_, start_, TraceFile::Place::when_asked);
            write_all(builder_, *anew, clock_.now_ns());
            const std::uint64_t bytes = anew->bytes() - anew->operator_bytes();
            const bool fits = bytes <= limit_bytes_ - limit_bytes_ / 4, helped = bytes < before - before / 4;
            before = bytes;
            if (!fits && helped && rows >= least_rewritten)
                continue;
            anew->file().take_place();
            error = anew->error();
            if (error.empty()) {
                writer_ = std::move(anew);
                // Some is never folded. If it leaves no room, the file may become longer.
                const bool has_room = bytes <= limit_bytes_ - limit_bytes_ / 8;
                most_bytes_ = has_room ? limit_bytes_ : std::max(limit_bytes_, 2 * bytes);
                failed_ = false;
                return;
            }
        } catch (const std::system_error& failed) {
            error = failed.what();
        }
        if (!std::exchange(failed_, true)) {   // once more, later
            most_bytes_ += std::max(limit_bytes_ / 4, least_extended);
            return;
        }
        writer_->close();
        writer_->file().end_early(error);
        return;
    }
}

void MessageSink::take_row(const std::byte* message) {
    const MessageHeader header = header_of(message);
    events_ += header.kind == MessageKind::batch     ? batch_stamps   // including those of collating
               : header.kind == MessageKind::collate ? 0u
                                                     : 1u + header.side_rows;
    switch (header.kind) {
    case MessageKind::sample: take_sample(message); break;
    case MessageKind::collate: take_collate(row_of<CollateSlice>(message)); break;
    case MessageKind::batch: both([&](auto& to) { to.batch(row_of<BatchRow>(message)); }); break;
    case MessageKind::step: {
        const auto row = row_of<StepRow>(message);
        both([&](auto& to) { to.step(row, side_rows_of<StepRow>(message, spans_)); });
        break;
    }
    case MessageKind::pass: {
        const auto row = row_of<PassRow>(message);
        both([&](auto& to) { to.pass(row, side_rows_of<PassRow>(message, spans_)); });
        break;
    }
    case MessageKind::pass_begin: both([&](auto& to) { to.pass_begin(row_of<PassRow>(message)); }); break;
    case MessageKind::end_of_data: both([&](auto& to) { to.end_of_data(row_of<EndOfDataRow>(message)); }); break;
    case MessageKind::order: both([&](auto& to) { to.order(row_of<OrderRow>(message)); }); break;
    case MessageKind::transfer: both([&](auto& to) { to.transfer(row_of<TransferRow>(message)); }); break;
    case MessageKind::device_step: {
        auto row = row_of<DeviceStepRow>(message);
        split_dry(builder_.rows(), row);
        both([&](auto& to) { to.device_step(row); });
        break;
    }
    case MessageKind::operator_begin: take_operator_begin(message); break;
    case MessageKind::operator_end: take_operator_end(message); break;
    case MessageKind::allocation:
        take_moment(row_of<AllocationRow>(message), &LedgerBuilder::allocation, &TraceWriter::allocation);
        break;
    case MessageKind::stack_sample:
        take_moment(row_of<StackSampleRow>(message), &LedgerBuilder::stack_sample, &TraceWriter::stack_sample);
        break;
    case MessageKind::skip: break;
    }
}

bool MessageSink::operators_full() const noexcept {
    return (has_file() ? writer_->operator_bytes() : operator_memory_) >= operator_limit_bytes_;
}

void MessageSink::take_operator_begin(const std::byte* message) {
    const auto begun = row_of<BegunOperator>(message);
    if (header_of(message).first) {   // the thread's first: its ring and its id may have been a dead thread's
        std::uint32_t& last = threads_of_rings_[ThreadRing::number_of(begun.ticket)];
        end_operators(std::exchange(last, begun.thread), 0, begun.at_ns);
        end_operators(begun.thread, 0, begun.at_ns);
    }
    const OperatorRow row{.kind = begun.what.kind,
                          .ended = false,
                          .name = begun.what.name,
                          .thread = begun.thread,
                          .shapes = begun.what.shapes,
                          .stack = begun.what.stack,
                          .begin_ns = begun.at_ns,
                          .sequence = begun.what.sequence,
                          .forward_thread = begun.what.forward_thread,
                          .flops = begun.what.flops};
    if (operators_full() || !builder_.operator_begin(row)) {
        drop(begun.at_ns);
        return;
    }
    if (open_operators_.size() <= begun.thread)
        open_operators_.resize(begun.thread + 1u);
    open_operators_[begun.thread].push_back(begun.ticket);
    operator_memory_ += sizeof row;
    if (writer_)
        writer_->operator_begin(row);
}

void MessageSink::take_operator_end(const std::byte* message) {
    const auto end = row_of<EndedOperator>(message);
    if (end.thread >= open_operators_.size())
        return;
    // If the begin was dropped or is closed already, nothing ends; if ends of inner operators were lost, they end, too.
    const std::vector<std::uint32_t>& open = open_operators_[end.thread];
    const auto found = std::find(open.rbegin(), open.rend(), end.ticket);
    if (found == open.rend())
        return;
    end_operators(end.thread, static_cast<std::size_t>(open.rend() - found), end.at_ns);
    open_operators_[end.thread].pop_back();
    both([&](auto& to) { to.operator_end(end.thread, end.at_ns, false); });
}

/// Closes the innermost open operators of a thread until `left` remain.
void MessageSink::end_operators(std::uint32_t of_thread, std::size_t left, std::int64_t at_ns) {
    if (of_thread >= open_operators_.size())
        return;
    for (; open_operators_[of_thread].size() > left; open_operators_[of_thread].pop_back())
        both([&](auto& to) { to.operator_end(of_thread, at_ns, true); });
}

template <class Row>
void MessageSink::take_moment(const Row& row, bool (LedgerBuilder::*build)(const Row&),
                              void (TraceWriter::*write)(const Row&)) {
    if (operators_full() || !(builder_.*build)(row)) {
        drop(row.at_ns);
        return;
    }
    operator_memory_ += sizeof row;
    if (writer_)
        (*writer_.*write)(row);
}

void MessageSink::take_sample(const std::byte* message) {
    both([&](auto& to) { to.sample(row_of<SampleRow>(message), side_rows_of<SampleRow>(message, stages_)); });
}

void MessageSink::take_collate(const CollateSlice& slice) {
    if (writer_)   // the batch's row has it, too
        writer_->collate(slice.worker, slice.begin_ns, slice.end_ns);
}

void MessageSink::add(const RareRow& rare, std::int64_t now_ns) {
    if (gave_up_)
        return;
    if (const auto* pipeline = std::get_if<PipelineRow>(&rare)) {
        builder_.pipeline(*pipeline);
        if (writer_)
            writer_->pipeline(*pipeline, now_ns);
    } else if (const auto* setting = std::get_if<SettingRow>(&rare)) {
        both([&](auto& to) { to.setting(*setting); });
    } else if (const auto* failure = std::get_if<FailureRow>(&rare)) {
        builder_.failure(*failure);
        if (writer_)
            writer_->failure(*failure, now_ns);
    } else if (const auto* packed = std::get_if<PackedSamples>(&rare)) {
        unpack(*packed, [&](const SampleRecord& sample) {
            events_ += 1u + sample.stage_count;
            both([&](auto& to) { to.sample(sample.row, std::span{sample.stages}.first(sample.stage_count)); });
        });
    } else {
        const auto& [key, value] = std::get<Fact>(rare);
        builder_.fact(key, value);
        if (writer_)
            writer_->fact(key, value, now_ns);
    }
    keep_within_limit();
}

void MessageSink::add(const HostRow& row) {
    if (gave_up_)
        return;
    both([&](auto& to) { to.host(row); });
    keep_within_limit();
}

void MessageSink::add(const Definitions& added) {
    if (added.empty() || gave_up_)
        return;
    both([&](auto& to) { to.definitions(added); });
    operator_memory_ += bytes_of(added);
}

void MessageSink::add_dropped(std::uint32_t ring, const Ring::Drops& drops) {
    if (drops.count == 0 || gave_up_)
        return;
    both([&](auto& to) { to.dropped({drops.count, drops.from_ns, drops.to_ns, ring}); });
    keep_within_limit();
}

void MessageSink::end_block_if_due() {
    if (writer_)
        writer_->end_block_if_due(std::chrono::steady_clock::now());
}

void MessageSink::close() {
    if (writer_)
        writer_->close();
}

void MessageSink::give_up() noexcept {
    gave_up_ = true;
    writer_.reset();
}

}   // namespace drawpoint
