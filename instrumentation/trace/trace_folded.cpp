// The part of TraceWriter for the totals of folded rows.

#include <string>

#include <protozero/pbf_writer.hpp>

#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_put.hpp"
#include "instrumentation/trace/trace_writer.hpp"

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_writer;

constexpr std::size_t most_record_bytes = 256u << 10;

/// A row's columns as a message.
template <class Row>
std::string message_of(const Row& row) {
    std::string bytes;
    put_columns(bytes, row, {});
    return bytes;
}

void put(std::string& to, f::Tag tag, const DurationHistogram& durations) {
    const DurationHistogram::Parts& parts = durations.parts();
    pbf_writer writer{to};
    pbf_writer in{writer, tag};
    in.add_int64(f::histogram::total_ns, parts.total_ns);
    in.add_int64(f::histogram::min_ns, parts.min_ns);
    in.add_int64(f::histogram::max_ns, parts.max_ns);
    in.add_double(f::histogram::mean_ns, parts.mean_ns);
    in.add_double(f::histogram::squares, parts.squares);
    in.add_packed_uint64(f::histogram::calls, parts.counts.begin(), parts.counts.end());
}

std::string message_of(const FoldedAction& row) {
    std::string bytes;
    put_columns(bytes, row, {});
    const std::string_view name = name_of(row.action);
    pbf_writer{bytes}.add_string(f::folded::action, name.data(), name.size());
    put(bytes, f::folded::action_durations, row.durations);
    return bytes;
}

std::string message_of(const FoldedStage& row) {
    std::string bytes;
    put_columns(bytes, row, {});
    pbf_writer{bytes}.add_message(f::folded::usage, message_of(row.usage));
    put(bytes, f::folded::stage_durations, row.durations);
    return bytes;
}

}   // namespace

void TraceWriter::folded(const Folded& totals) {
    if (!packets_.file().is_open())
        return;
    const auto end = [&] { instant(name_folded, packets_.place(instants_, totals.until_ns), f::record::folded); };
    std::string& record = packets_.new_record();
    put_columns(record, totals, {packets_.start_ns(), 0});
    pbf_writer{record}.add_message(f::folded::draw, message_of(totals.draw));
    if (totals.device != DeviceTotals{})
        pbf_writer{record}.add_message(f::folded::device, message_of(totals.device));
    const auto add = [&](f::Tag tag, const auto& rows) {
        for (const auto& row : rows) {
            if (record.size() > most_record_bytes) {
                end();
                (void)packets_.new_record();
                put_columns(record, Folded{.until_ns = totals.until_ns}, {packets_.start_ns(), 0});
            }
            pbf_writer{record}.add_message(tag, message_of(row));
        }
    };
    add(f::folded::actions, totals.actions);
    add(f::folded::stages, totals.stages);
    add(f::folded::workers, totals.workers);
    end();
}

}   // namespace drawpoint
