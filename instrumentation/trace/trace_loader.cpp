// The part of TraceWriter for a loader's rows: samples on the tracks of their workers, batches on a track per slot.

#include <algorithm>
#include <functional>
#include <string>

#include <protozero/pbf_writer.hpp>

#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_put.hpp"
#include "instrumentation/trace/trace_writer.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_writer;

constexpr std::size_t most_flows = 4096;
constexpr std::uint64_t ended_flow_bytes = 10;
// A sample shows only its longest stages as slices, so that it takes at most about 200 bytes.
constexpr std::size_t most_stage_slices = 3, sample_bytes = 200, slice_bytes = 34;

enum WorkerName : std::uint32_t { name_sample = 1, name_stage, name_collate };
enum LaneName : std::uint32_t { name_in_flight = 1, name_offered };

}   // namespace

void TraceWriter::sample(const SampleRow& row, std::span<const StageRow> stages) {
    if (!packets_.file().is_open())
        return;
    TraceSequence& sequence = worker(row.worker);
    packets_.open(sequence);
    const std::size_t before = packets_.position();
    const TracePlace at = packets_.place(sequence, row.begin_ns);

    values_.clear();
    gaps_.clear();
    idle_.clear();
    std::uint64_t stages_cpu = 0;
    std::int64_t reached_ns = row.begin_ns;
    for (const StageRow& stage : stages) {
        gaps_.push_back(wrapping_difference(stage.begin_ns, reached_ns));
        values_.push_back(static_cast<std::uint64_t>(stage.ns));
        reached_ns = wrapping_sum(stage.begin_ns, stage.ns);
        const std::uint64_t idle = wrapping_difference(stage.ns, stage.cpu_ns);
        const bool measured = stage.cpu_ns != no_stamp;
        idle_.push_back(measured ? idle + (static_cast<std::int64_t>(idle) >= 0 ? 1 : 0) : 0);
        stages_cpu += measured ? static_cast<std::uint64_t>(stage.cpu_ns) : 0;
    }
    const auto stage_idle = unless_zero(idle_);
    pbf_writer record = new_record(packets_, row, at);
    if (row.cpu_ns)
        record.add_uint64(stage_idle.empty() ? f::sample::cpu_ns : f::sample::other_cpu_ns,
                          static_cast<std::uint64_t>(*row.cpu_ns) - stages_cpu);
    put(record, f::sample::stage_ns, values_);
    put(record, f::sample::gap_ns, unless_zero(gaps_));
    put(record, f::sample::stage_idle_ns, stage_idle);

    const std::uint64_t flow = flow_base_ | next_flow_++;
    packets_.begin_flow(flow);
    sample_flows_[{row.pipeline, row.epoch, row.batch}].push_back({flow, at.timestamp_ns});
    bound(sample_flows_);
    packets_.event(sequence, f::event::slice_begin, name_sample, at, f::record::sample);
    const std::size_t taken = packets_.position() - before + slice_bytes / 2 + ended_flow_bytes;
    stage_slices(sequence, row, stages,
                 std::min(most_stage_slices, taken < sample_bytes ? (sample_bytes - taken) / slice_bytes : 0));
    packets_.bare(sequence, f::event::slice_end, 0, reached_ns);
    end_record();
}

/// Writes slices of the `most` longest stages. `values_` has the stages' durations, and is sorted here.
void TraceWriter::stage_slices(TraceSequence& sequence, const SampleRow& row, std::span<const StageRow> stages,
                               std::size_t most) {
    std::vector<std::uint64_t>& lengths = values_;
    std::sort(lengths.begin(), lengths.end(), std::greater{});
    const std::uint64_t shortest =
        most == 0 || lengths.size() <= most ? 1 : std::max(lengths[most - 1], std::uint64_t{1});
    std::size_t shown = 0;
    for (std::size_t i = 0; i < stages.size() && shown < most; ++i) {
        if (static_cast<std::uint64_t>(stages[i].ns) < shortest)
            continue;
        ++shown;
        const bool named = row.pipeline < stage_names_.size() && i < stage_names_[row.pipeline].size();
        packets_.bare(sequence, f::event::slice_begin, named ? stage_names_[row.pipeline][i] : +name_stage,
                      stages[i].begin_ns);
        packets_.bare(sequence, f::event::slice_end, 0, wrapping_sum(stages[i].begin_ns, stages[i].ns));
    }
}

/// Writes a slice without a record, since the batch's record has the times.
void TraceWriter::collate(std::uint16_t number, std::int64_t begin_ns, std::int64_t end_ns) {
    if (!packets_.file().is_open())
        return;
    TraceSequence& sequence = worker(number);
    packets_.open(sequence);
    packets_.bare(sequence, f::event::slice_begin, name_collate, begin_ns);
    packets_.bare(sequence, f::event::slice_end, 0, end_ns);
    end_record();
}

void TraceWriter::batch(const BatchRow& row) {
    if (!packets_.file().is_open())
        return;
    TraceSequence& sequence = lane(row.pipeline, row.slot);
    packets_.open(sequence);
    const std::size_t before = packets_.position();
    std::size_t flow_bytes = 0;
    const bool admitted = row.admitted_ns != no_stamp;
    const std::int64_t base_ns = admitted ? row.admitted_ns : packets_.start_ns();
    const TracePlace at = packets_.place(sequence, base_ns);
    values_.clear();
    std::int64_t end_ns = base_ns;
    const auto add_stamp = [&]<class T, class Kind>(const schema::Column<BatchRow, T, Kind>& column) {
        if constexpr (std::is_same_v<Kind, schema::Stamp>) {
            const std::int64_t stamp = row.*column.member;
            const std::uint64_t since = wrapping_difference(stamp, base_ns);
            values_.push_back(stamp == no_stamp ? 0 : since + (static_cast<std::int64_t>(since) >= 0 ? 1 : 0));
            end_ns = std::max(end_ns, stamp);
        }
    };
    schema::walk<BatchRow>([&](const auto&... columns) { (add_stamp(columns), ...); });
    while (!values_.empty() && values_.back() == 0)
        values_.pop_back();
    pbf_writer record = new_record(packets_, row, at);
    put(record, f::batch::stamps, values_);
    if (!admitted)
        record.add_bool(f::batch::never_admitted, true);
    packets_.event(sequence, f::event::slice_begin, name_in_flight, at, f::record::batch);

    const auto samples = sample_flows_.find({row.pipeline, row.epoch, row.batch});
    if (row.offered_ns != no_stamp && row.status != BatchStatus::abandoned) {
        const TracePlace offered = packets_.place(sequence, row.offered_ns);
        if (samples != sample_flows_.end())
            for (const Flow& flow : samples->second)
                if (flow.timestamp_ns <= offered.timestamp_ns)   // readers drop flows that end before they begin
                    packets_.end_flow(flow.id);
        if (row.status == BatchStatus::taken) {
            const std::uint64_t flow = flow_base_ | next_flow_++;
            packets_.begin_flow(flow);
            batch_flows_[{0, row.epoch, row.batch}] = {flow, offered.timestamp_ns};
            bound(batch_flows_);
        }
        flow_bytes = packets_.ended_flows() * ended_flow_bytes;
        packets_.event(sequence, f::event::instant, name_offered, offered, 0);
    }
    if (samples != sample_flows_.end())
        sample_flows_.erase(samples);
    packets_.bare(sequence, f::event::slice_end, 0, row.taken_ns != no_stamp ? row.taken_ns : end_ns);
    if (row.taken_ns != no_stamp) {
        counter(ready_batches_, row.taken_ns, row.ready_batches, last_ready_batches_);
        // An estimate: only this batch's bytes are known, and a loader's batches are of about equal size.
        counter(ready_bytes_, row.taken_ns, row.ready_batches * row.bytes, last_ready_bytes_);
    }
    batch_bytes_ = packets_.position() - before - flow_bytes;
    end_record();
}

TraceSequence& TraceWriter::worker(std::uint16_t number) {
    if (workers_.size() <= number)
        workers_.resize(number + 1u);
    std::optional<TraceSequence>& sequence = workers_[number];
    if (!sequence)
        sequence = packets_.new_sequence(packets_.new_track("worker " + std::to_string(number), rank_workers + number),
                                         worker_names_);
    return *sequence;
}

TraceSequence& TraceWriter::lane(std::uint16_t pipeline, std::uint32_t slot) {
    const auto [at, added] = lanes_.try_emplace({pipeline, slot});
    if (added)
        at->second = packets_.new_sequence(packets_.new_track("batches", rank_batches), lane_names_);
    return at->second;
}

void TraceWriter::counter(TraceSequence& sequence, std::int64_t stamp_ns, std::uint64_t value,
                          std::optional<std::uint64_t>& last) {
    if (last == value)
        return;
    last = value;
    packets_.open(sequence);
    packets_.counter(sequence, packets_.place(sequence, stamp_ns), static_cast<std::int64_t>(value));
}

template <class Value>
void TraceWriter::bound(std::map<BatchKey, Value>& flows) {
    while (flows.size() > most_flows)
        flows.erase(flows.begin());
}

}   // namespace drawpoint
