// The part of TraceWriter for operators, allocations, stack samples and the names, threads and stacks they refer to.

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_put.hpp"
#include "instrumentation/trace/trace_writer.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_writer;

constexpr std::size_t definitions_values = 6'000;   // most values in one packet

/// Appends the columns of a row whose columns are all 32-bit numbers.
template <class Row>
void append_packed(std::vector<std::uint64_t>& to, const Row& row) {
    const auto append = [&]<class Kind>(const schema::Column<Row, std::uint32_t, Kind>& column) {
        to.push_back(row.*column.member + std::uint32_t{std::is_same_v<Kind, schema::PlusOne>});
    };
    schema::walk<Row>([&](const auto&... columns) { (append(columns), ...); });
}

std::string name_of(std::string_view what, const ThreadRow& thread) {
    std::string name{what};
    name += thread.name.empty() ? ":" : ": " + thread.name;
    return name +
           (thread.device < 0
                ? " (" + std::to_string(thread.tid)
                : " (device " + std::to_string(thread.device) + ", stream " + std::to_string(thread.tid)) +
           ")";
}

}   // namespace

void TraceWriter::definitions(const Definitions& added) {
    const auto append = [](auto& all, const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
    append(definitions_.names, added.names);
    add_threads(definitions_.threads, thread_positions_, added.threads);
    append(definitions_.frames, added.frames);
    append(definitions_.stacks, added.stacks);
    if (!packets_.file().is_open())
        return;

    packets_.record().clear();
    for (const std::string& name : added.names) {
        pbf_writer{definitions_record()}.add_string(f::definitions::names, name);
        ++defined_.names_before;
        end_definitions();
    }
    for (const ThreadRow& row : added.threads) {
        std::string thread;
        put_columns(thread, row, {});   // never empty, so the message is never omitted
        pbf_writer{definitions_record()}.add_message(f::definitions::threads, thread);
        defined_.threads.push_back(static_cast<std::uint32_t>(thread_positions_.at({row.device, row.tid})));
        end_definitions();
        if (row.device < 0 && !row.name.empty())
            packets_.name_thread(row.tid, row.name);
    }
    const auto add_packed = [&](f::Tag tag, const auto& rows, std::uint32_t& defined) {
        values_.clear();
        std::uint32_t count = 0;
        for (const auto& row : rows) {
            append_packed(values_, row);
            ++count;
            if (values_.size() >= definitions_values || &row == &rows.back()) {
                pbf_writer record{definitions_record()};
                put(record, tag, values_);
                values_.clear();
                defined += std::exchange(count, 0);
                end_definitions();
            }
        }
    };
    add_packed(f::definitions::frames, added.frames, defined_.frames_before);
    add_packed(f::definitions::stacks, added.stacks, defined_.stacks_before);
    end_definitions(0);
}

/// The record of definitions; a new one begins with what comes before it.
std::string& TraceWriter::definitions_record() {
    std::string& bytes = packets_.record();
    if (bytes.empty()) {
        pbf_writer record{bytes};
        record.add_uint32(f::definitions::names_before, defined_.names_before);
        record.add_uint32(f::definitions::frames_before, defined_.frames_before);
        record.add_uint32(f::definitions::stacks_before, defined_.stacks_before);
    }
    return bytes;
}

/// Writes the current record as a packet if it is larger than `more_than` bytes.
void TraceWriter::end_definitions(std::size_t more_than) {
    if (packets_.record().size() <= more_than)
        return;
    const std::size_t before = packets_.position();
    pbf_writer{packets_.record()}.add_packed_uint32(f::definitions::thread_numbers, defined_.threads.begin(),
                                                    defined_.threads.end());
    defined_.threads.clear();
    packets_.message(f::packet::definitions, packets_.record());
    packets_.record().clear();
    packets_.file().count_record();
    end_operator_record(before);
}

void TraceWriter::operator_begin(const OperatorRow& row) {
    if (!packets_.file().is_open())
        return;
    const std::size_t before = packets_.position();
    NamedTrack& track = named_track(tracks_of(row.thread).operators, "operators", row.thread);
    const std::uint32_t name = interned(track, row.name);
    const TracePlace at = packets_.place(track.sequence, row.begin_ns);
    new_record(packets_, row, at);
    packets_.event(track.sequence, f::event::slice_begin, name, at, f::record::operator_begin);
    ++track.open;
    end_operator_record(before);
}

void TraceWriter::operator_end(std::uint32_t thread, std::int64_t at_ns, bool lost) {
    if (!packets_.file().is_open() || thread >= thread_tracks_.size() || !thread_tracks_[thread].operators ||
        thread_tracks_[thread].operators->open == 0)
        return;
    const std::size_t before = packets_.position();
    NamedTrack& track = *thread_tracks_[thread].operators;
    const TracePlace at = packets_.place(track.sequence, at_ns);
    pbf_writer record{packets_.new_record()};
    record.add_uint32(f::operator_end::thread, thread);
    if (lost)
        record.add_bool(f::operator_end::lost, true);
    put(record, f::early_ns, at.early_ns);
    packets_.event(track.sequence, f::event::slice_end, 0, at, f::record::operator_end);
    --track.open;
    end_operator_record(before);
}

void TraceWriter::allocation(const AllocationRow& row) {
    if (!packets_.file().is_open())
        return;
    const std::size_t before = packets_.position();
    DeviceTrack& device = device_tracks_[row.device];
    if (device.track == 0)
        device.track = packets_.new_track(row.device < 0 ? "allocated_bytes"
                                                         : "allocated_bytes of device " + std::to_string(row.device),
                                          rank_allocated_bytes, CounterUnit::bytes);
    const auto [sequence, added] = tracks_of(row.thread).allocations.try_emplace(row.device);
    if (added)
        sequence->second = packets_.new_sequence(device.track, no_names_);
    packets_.open(sequence->second);
    const TracePlace at = packets_.place(sequence->second, row.at_ns);
    new_record(packets_, row, at);
    device.bytes = row.total_allocated != 0 ? row.total_allocated : wrapping_sum(device.bytes, row.bytes);
    packets_.counter(sequence->second, at, device.bytes, f::record::allocation);
    end_operator_record(before);
}

void TraceWriter::stack_sample(const StackSampleRow& row) {
    if (!packets_.file().is_open())
        return;
    const std::size_t before = packets_.position();
    NamedTrack& track = named_track(tracks_of(row.thread).samples, "stack samples", row.thread);
    const std::uint32_t name = interned(track, definitions_.frames[definitions_.stacks[row.stack].frame].function);
    const TracePlace at = packets_.place(track.sequence, row.at_ns);
    new_record(packets_, row, at);
    packets_.event(track.sequence, f::event::instant, name, at, f::record::stack_sample);
    end_operator_record(before);
}

TraceWriter::ThreadTracks& TraceWriter::tracks_of(std::uint32_t thread) {
    if (thread_tracks_.size() <= thread)
        thread_tracks_.resize(thread + 1u);
    return thread_tracks_[thread];
}

/// Returns the thread's track, created on first use with the thread's name at that time.
TraceWriter::NamedTrack& TraceWriter::named_track(std::optional<NamedTrack>& track, std::string_view what,
                                                  std::uint32_t thread) {
    if (!track) {
        const int rank = rank_operators + static_cast<int>(std::min(thread, 1u << 20)) * 2 + (what != "operators");
        track = NamedTrack{.sequence = packets_.new_sequence(
                               packets_.new_track(name_of(what, definitions_.threads[thread]), rank), no_names_),
                           .named = {}};
        packets_.open(track->sequence);
    }
    return *track;
}

/// The number of a name on this track; writes the name before its first use.
std::uint32_t TraceWriter::interned(NamedTrack& track, std::uint32_t name) {
    if (track.named.size() <= name)
        track.named.resize(definitions_.names.size());
    if (!track.named[name]) {
        const std::string& text = definitions_.names[name];
        // Viewers omit slices with an empty name.
        packets_.add_name(track.sequence, name + std::uint64_t{1}, text.empty() ? "operator" : text);
        track.named[name] = true;
    }
    return name + 1;
}

void TraceWriter::end_operator_record(std::size_t block_before) {
    operator_bytes_ += packets_.position() - block_before;
    end_record();
}

/// Ends open slices, since a viewer would show them with length 0.
void TraceWriter::end_operator_slices() {
    for (ThreadTracks& tracks : thread_tracks_)
        for (; tracks.operators && tracks.operators->open != 0; --tracks.operators->open) {
            TraceSequence& sequence = tracks.operators->sequence;
            packets_.bare(sequence, f::event::slice_end, 0,
                          wrapping_sum(packets_.start_ns(), std::max(sequence.last_ns, loop_.last_ns)));
        }
}

}   // namespace drawpoint
