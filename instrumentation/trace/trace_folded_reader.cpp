#include "trace_folded_reader.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "instrumentation/trace/trace_columns.hpp"
#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_keys.hpp"

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_reader;

DurationHistogram read_histogram(pbf_reader from) {
    DurationHistogram::Parts parts{.total_ns = 0, .min_ns = 0, .max_ns = 0};
    while (from.next())
        switch (from.tag_and_type()) {
        case varint_key(f::histogram::total_ns): parts.total_ns = from.get_int64(); break;
        case varint_key(f::histogram::min_ns): parts.min_ns = from.get_int64(); break;
        case varint_key(f::histogram::max_ns): parts.max_ns = from.get_int64(); break;
        case key_of<double>(f::histogram::mean_ns): parts.mean_ns = from.get_double(); break;
        case key_of<double>(f::histogram::squares): parts.squares = from.get_double(); break;
        case bytes_key(f::histogram::calls):
            for (const std::uint64_t calls : from.get_packed_uint64())
                if (parts.counts.size() <= DurationHistogram::most_counts)   // of more, none is kept
                    parts.counts.push_back(calls);
            break;
        default: from.skip();
        }
    return DurationHistogram{std::move(parts)};
}

std::optional<FoldedAction> read_action(pbf_reader from) {
    FoldedAction row{.phase = {}, .action = {}, .durations = {}};
    bool named = false;
    RecordTimes times;
    const bool known = read_columns(from, row, times, [&](std::uint32_t key, pbf_reader& field) {
        if (key == bytes_key(f::folded::action)) {
            const std::string name = field.get_string();
            for (std::size_t i = 0; i < action_count; ++i)
                if (name_of(static_cast<Action>(i)) == name) {
                    row.action = static_cast<Action>(i);
                    named = true;
                }
        } else if (key == bytes_key(f::folded::action_durations)) {
            row.durations = read_histogram(field.get_message());
        } else {
            return false;
        }
        return true;
    });
    if (std::isnan(row.rates))
        row.rates = std::numeric_limits<double>::infinity();
    return known && named ? std::optional{std::move(row)} : std::nullopt;
}

FoldedStage read_stage(pbf_reader from) {
    FoldedStage row{.stage = FoldedStage::collate, .durations = {}};   // not written
    RecordTimes times;
    (void)read_columns(from, row, times, [&](std::uint32_t key, pbf_reader& field) {
        if (key == bytes_key(f::folded::usage)) {
            pbf_reader usage = field.get_message();
            (void)read_columns(usage, row.usage, {});
        } else if (key == bytes_key(f::folded::stage_durations)) {
            row.durations = read_histogram(field.get_message());
        } else {
            return false;
        }
        return true;
    });
    return row;
}

}   // namespace

Folded read_folded(pbf_reader record, std::int64_t start_ns) {
    Folded totals;
    RecordTimes times{start_ns, 0};
    (void)read_columns(record, totals, times, [&](std::uint32_t key, pbf_reader& from) {
        switch (key) {
        case bytes_key(f::folded::draw): {
            pbf_reader draw = from.get_message();
            (void)read_columns(draw, totals.draw, {});
            break;
        }
        case bytes_key(f::folded::device): {
            pbf_reader device = from.get_message();
            (void)read_columns(device, totals.device, {});
            break;
        }
        case bytes_key(f::folded::actions):
            if (std::optional<FoldedAction> row = read_action(from.get_message()))
                totals.actions.push_back(*std::move(row));
            break;
        case bytes_key(f::folded::stages): totals.stages.push_back(read_stage(from.get_message())); break;
        case bytes_key(f::folded::workers): {
            pbf_reader worker = from.get_message();
            (void)read_columns(worker, totals.workers.emplace_back(), {});
            break;
        }
        default: return false;
        }
        return true;
    });
    return totals;
}

}   // namespace drawpoint
