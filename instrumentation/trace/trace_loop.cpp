// The part of TraceWriter for a loop's rows: steps, passes, ends of data.

#include <algorithm>
#include <iterator>
#include <utility>

#include <protozero/pbf_writer.hpp>

#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_put.hpp"
#include "instrumentation/trace/trace_writer.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_writer;

// A step shows only its longest inner slices, so that it takes at most about 600 bytes together with its batch. The
// frame is the slices of step, draw and batch, without the record.
constexpr std::size_t most_inner_slices = 7;
constexpr std::size_t step_bytes = 600, step_frame_bytes = 150, slice_bytes = 34;

}   // namespace

/// Adds pieces to the current record, and the gaps between them unless all are 0.
void TraceWriter::add_spans(std::uint32_t spans_tag, std::uint32_t gaps_tag, std::int64_t from_ns,
                            std::span<const SpanRow> spans) {
    gaps_.clear();
    for (const SpanRow& piece : spans) {
        gaps_.push_back(wrapping_difference(piece.begin_ns, from_ns));
        values_.push_back(static_cast<std::uint64_t>(piece.span));
        values_.push_back(static_cast<std::uint64_t>(piece.ns));
        from_ns = wrapping_sum(piece.begin_ns, piece.ns);
    }
    pbf_writer record{packets_.record()};
    put(record, spans_tag, values_);
    put(record, gaps_tag, unless_zero(gaps_));
}

void TraceWriter::step(const StepRow& row, std::span<const SpanRow> spans) {
    if (!packets_.file().is_open())
        return;
    packets_.open(loop_);
    const TracePlace at = packets_.place(loop_, row.draw_begin_ns);
    new_record(packets_, row, at);
    values_ = {static_cast<std::uint64_t>(row.draw_ns), static_cast<std::uint64_t>(row.batch_ns)};
    add_spans(f::step::spans, f::step::gap_ns, row.draw_begin_ns, spans);

    const auto name = [&](auto what) { return number_of(loop_names_, name_of(what)); };
    const std::int64_t draw_end_ns = wrapping_sum(row.draw_begin_ns, row.draw_ns),
                       end_ns = wrapping_sum(draw_end_ns, row.batch_ns);
    find_step_slices(row, spans, inner_);
    const std::size_t taken = std::exchange(batch_bytes_, 0) + step_frame_bytes + packets_.record().size();
    keep_longest(inner_, std::min(most_inner_slices, taken < step_bytes ? (step_bytes - taken) / slice_bytes : 0));
    packets_.event(loop_, f::event::slice_begin, name(Action::step), at, f::record::step);
    packets_.bare(loop_, f::event::slice_begin, name(Action::draw), row.draw_begin_ns);
    inner_slices(StepSlice::Where::draw);
    packets_.bare(loop_, f::event::slice_end, 0, draw_end_ns);
    if (row.size != 0 || row.batch_ns != 0) {
        const TracePlace batch_at = packets_.place(loop_, draw_end_ns);
        const auto flow = batch_flows_.find({0, row.epoch, row.batch});
        if (flow != batch_flows_.end()) {
            if (flow->second.timestamp_ns <= batch_at.timestamp_ns)
                packets_.end_flow(flow->second.id);
            batch_flows_.erase(flow);
        }
        packets_.event(loop_, f::event::slice_begin, name(Action::batch), batch_at, 0);
        inner_slices(StepSlice::Where::batch);
        packets_.bare(loop_, f::event::slice_end, 0, end_ns);
    }
    if (row.status != StepStatus::complete)
        packets_.bare(loop_, f::event::instant, name(row.status), end_ns);
    packets_.bare(loop_, f::event::slice_end, 0, end_ns);
    inner_slices(StepSlice::Where::after);
    end_record();
}

void TraceWriter::inner_slices(StepSlice::Where where) {
    for (const StepSlice& slice : inner_)
        if (slice.where == where) {
            packets_.bare(loop_, f::event::slice_begin, number_of(loop_names_, slice.name), slice.begin_ns);
            packets_.bare(loop_, f::event::slice_end, 0, slice.end_ns);
        }
}

void TraceWriter::pass_begin(const PassRow& row) {
    if (!packets_.file().is_open())
        return;
    packets_.open(loop_);
    const TracePlace at = packets_.place(loop_, row.begin_ns);
    new_record(packets_, row, at);
    packets_.event(loop_, f::event::slice_begin, number_of(loop_names_, name_of(row.kind)), at, f::record::pass_begin);
    open_passes_.push_back(row);
    end_record();
}

void TraceWriter::pass(const PassRow& row, std::span<const SpanRow> spans) {
    if (!packets_.file().is_open())
        return;
    packets_.open(loop_);
    // The slices must nest even if a begin or an end was dropped.
    const auto opened = std::find_if(open_passes_.rbegin(), open_passes_.rend(), [&](const PassRow& open) {
        return open.kind == row.kind && open.epoch == row.epoch && open.begin_ns == row.begin_ns;
    });
    const bool is_open = opened != open_passes_.rend();
    if (is_open) {
        for (auto inner = open_passes_.rbegin(); inner != opened; ++inner)
            packets_.bare(loop_, f::event::slice_end, 0, row.end_ns);
        open_passes_.erase(std::next(opened).base(), open_passes_.end());
    }
    const TracePlace at = packets_.place(loop_, row.end_ns);
    pbf_writer record = new_record(packets_, row, at);
    put(record, f::pass::ns, wrapping_difference(row.end_ns, row.begin_ns));
    values_.clear();
    add_spans(f::pass::spans, f::pass::gap_ns, row.begin_ns, spans);
    if (is_open)
        packets_.event(loop_, f::event::slice_end, 0, at, f::record::pass);
    else
        packets_.event(loop_, f::event::instant, number_of(loop_names_, name_of(row.kind)), at, f::record::pass);
    end_record();
}

void TraceWriter::end_of_data(const EndOfDataRow& row) {
    if (!packets_.file().is_open())
        return;
    packets_.open(loop_);
    const TracePlace at = packets_.place(loop_, row.begin_ns);
    new_record(packets_, row, at);
    packets_.event(loop_, f::event::slice_begin, number_of(loop_names_, name_of(Action::end_of_data)), at,
                   f::record::end_of_data);
    packets_.bare(loop_, f::event::slice_end, 0, wrapping_sum(row.begin_ns, row.ns));
    end_record();
}

/// Ends open slices, since a viewer would show them with length 0.
void TraceWriter::end_pass_slices() {
    for (; !open_passes_.empty(); open_passes_.pop_back())
        packets_.bare(loop_, f::event::slice_end, 0, wrapping_sum(packets_.start_ns(), loop_.last_ns));
}

}   // namespace drawpoint
