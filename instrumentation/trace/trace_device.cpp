// The part of TraceWriter for a device's rows: its steps, and the copies to it.

#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_put.hpp"
#include "instrumentation/trace/trace_writer.hpp"

namespace drawpoint {
namespace {

namespace f = trace_fields;

enum DeviceName : std::uint32_t { name_dry = 1, name_copy_wait, name_device_step, name_copy };

}   // namespace

/// The device's sequence of that kind, new if it is the first row.
TraceSequence& TraceWriter::of_device(std::optional<TraceSequence>& sequence, std::string_view track, Rank rank) {
    if (!sequence)
        sequence = packets_.new_sequence(packets_.new_track(track, rank), device_names_);
    packets_.open(*sequence);
    return *sequence;
}

void TraceWriter::transfer(const TransferRow& row) {
    if (!packets_.file().is_open())
        return;
    TraceSequence& sequence = of_device(copies_, "copies", rank_copies);
    packets_.bare(sequence, f::event::slice_begin, name_copy, row.begin_ns);
    const TracePlace at = packets_.place(sequence, row.end_ns);
    new_record(packets_, row, at);
    packets_.event(sequence, f::event::slice_end, 0, at, f::record::transfer);
    end_record();
}

void TraceWriter::device_step(const DeviceStepRow& row) {
    if (!packets_.file().is_open())
        return;
    TraceSequence& sequence = of_device(device_steps_, "device", rank_device);
    const auto slice = [&](DeviceName name, std::int64_t begin_ns, std::int64_t end_ns) {
        if (end_ns <= begin_ns)
            return;
        packets_.bare(sequence, f::event::slice_begin, name, begin_ns);
        packets_.bare(sequence, f::event::slice_end, 0, end_ns);
    };
    slice(name_dry, row.free_ns, row.queued_ns);
    slice(name_copy_wait, row.queued_ns, row.begin_ns);
    packets_.bare(sequence, f::event::slice_begin, name_device_step, row.begin_ns);
    const TracePlace at = packets_.place(sequence, row.end_ns);
    new_record(packets_, row, at);
    packets_.event(sequence, f::event::slice_end, 0, at, f::record::device_step);
    end_record();
}

}   // namespace drawpoint
