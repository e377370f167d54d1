#include "instrumentation/trace/trace_writer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <protozero/pbf_writer.hpp>

#include "instrumentation/host/host_use.hpp"
#include "instrumentation/trace/trace_descriptor.hpp"
#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_put.hpp"

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_writer;

std::vector<std::string> all_loop_names() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < span_count; ++i)
        (void)number_of(names, name_of(static_cast<Span>(i)));
    for (std::size_t i = 0; i < action_count; ++i)
        (void)number_of(names, name_of(static_cast<Action>(i)));
    for (const StepStatus status : {StepStatus::cancelled, StepStatus::failed})
        (void)number_of(names, name_of(status));
    return names;
}

}   // namespace

TraceWriter::TraceWriter(const std::filesystem::path& path, const StartTimes& start, TraceFile::Place place)
    : packets_{path, start.start_ns, place},
      lane_names_{"in flight", "offered"},
      instant_names_{"run",
                     "fact",
                     "pipeline",
                     "setting",
                     "failure",
                     "records dropped",
                     "totals of older rows",
                     "order of samples"},
      device_names_{"dry", "copy wait", "device step", "copy"},
      loop_names_{all_loop_names()},
      worker_names_{"sample", "stage", "collate"},
      flow_base_{random_bits(20) << 44} {
    // The first block has the clocks, the declaration of the records, and the tracks.
    std::string clocks, extensions;
    for (const auto& [id, ns] : std::array<std::pair<std::uint32_t, std::uint64_t>, 4>{
             {{f::relative_clock, 0}, {3, start.monotonic_ns}, {6, start.boottime_ns}, {1, start.realtime_ns}}}) {
        pbf_writer snapshot{clocks};
        pbf_writer clock{snapshot, 1};
        clock.add_uint32(1, id);
        clock.add_uint64(2, ns);
    }
    pbf_writer{extensions}.add_message(1, trace_descriptor());
    packets_.message(f::packet::clock_snapshot, clocks);
    packets_.message(f::packet::extensions, extensions);
    packets_.new_track("drawpoint", 0);
    loop_ = packets_.new_sequence(packets_.new_track("loop", rank_loop), loop_names_);
    ready_batches_ =
        packets_.new_sequence(packets_.new_track("ready_batches", rank_ready_batches, CounterUnit::count), no_names_);
    ready_bytes_ =
        packets_.new_sequence(packets_.new_track("ready_bytes", rank_ready_bytes, CounterUnit::bytes), no_names_);
    instants_ = packets_.new_sequence(loop_.track, instant_names_);
    write_run();
    packets_.file().end_block();
}

void TraceWriter::write_run() {
    pbf_writer record{packets_.new_record()};
    record.add_uint32(f::run::format, f::format);
    put(record, f::run::minor, f::minor);
    record.add_int64(f::run::start_ns, packets_.start_ns());
    for (std::size_t i = 0; i < span_count; ++i) {
        const std::string_view name = name_of(static_cast<Span>(i));
        record.add_string(f::run::spans, name.data(), name.size());
    }
    instant(name_run, {}, f::record::run);
}

void TraceWriter::instant(InstantName name, TracePlace at, f::Tag record_tag) {
    packets_.open(instants_);
    packets_.event(instants_, f::event::instant, name, at, record_tag);
    end_record();
}

void TraceWriter::dropped(const DroppedRow& row) {
    if (!packets_.file().is_open())
        return;
    new_record(packets_, row);
    packets_.file().count_dropped(row.records);
    instant(name_dropped, packets_.place(instants_, row.to_ns), f::record::dropped);
}

void TraceWriter::pipeline(const PipelineRow& row, std::int64_t now_ns) {
    if (!packets_.file().is_open())
        return;
    std::vector<std::uint32_t>& numbers = stage_names_.emplace_back();
    for (const std::string& stage : row.stages)
        numbers.push_back(number_of(worker_names_, stage.empty() ? "stage" : stage));
    pbf_writer record = new_record(packets_, row);
    put(record, f::pipeline::number, stage_names_.size() - 1);
    instant(name_pipeline, packets_.place(instants_, now_ns), f::record::pipeline);
}

void TraceWriter::setting(const SettingRow& row) {
    if (!packets_.file().is_open())
        return;
    const TracePlace at = packets_.place(instants_, row.at_ns);
    new_record(packets_, row, at);
    instant(name_setting, at, f::record::setting);
}

void TraceWriter::order(const OrderRow& row) {
    if (!packets_.file().is_open())
        return;
    const TracePlace at = packets_.place(instants_, row.begin_ns);
    new_record(packets_, row, at);
    instant(name_order, at, f::record::order);
}

/// Writes two counters: CPU use of this process and of all others since the previous row, in percent of a core.
void TraceWriter::host(const HostRow& row) {
    if (!packets_.file().is_open())
        return;
    if (!own_cpu_) {
        own_cpu_ = packets_.new_sequence(packets_.new_track("own_cpu", rank_own_cpu, CounterUnit::percent), no_names_);
        other_cpu_ =
            packets_.new_sequence(packets_.new_track("other_cpu", rank_other_cpu, CounterUnit::percent), no_names_);
        last_host_ = row;
    }
    const HostUse use = host_use(std::exchange(last_host_, row), row);
    packets_.open(*own_cpu_);
    const TracePlace at = packets_.place(*own_cpu_, row.at_ns);
    new_record(packets_, row, at);
    packets_.counter(*own_cpu_, at, use.own, f::record::host);
    packets_.open(*other_cpu_);
    packets_.counter(*other_cpu_, packets_.place(*other_cpu_, row.at_ns), use.others);
    end_record();
}

void TraceWriter::failure(const FailureRow& row, std::int64_t now_ns) {
    if (!packets_.file().is_open())
        return;
    new_record(packets_, row);
    instant(name_failure, packets_.place(instants_, now_ns), f::record::failure);
}

void TraceWriter::fact(std::string_view key, std::string_view value, std::int64_t now_ns) {
    if (!packets_.file().is_open())
        return;
    pbf_writer record{packets_.new_record()};
    record.add_string(f::fact::key, key.data(), key.size());
    record.add_string(f::fact::value, value.data(), value.size());
    instant(name_fact, packets_.place(instants_, now_ns), f::record::fact);
}

void TraceWriter::close() {
    if (!packets_.file().is_open())
        return;
    end_pass_slices();
    end_operator_slices();
    packets_.file().close();
}

}   // namespace drawpoint
