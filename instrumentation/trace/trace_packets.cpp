#include "instrumentation/trace/trace_packets.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>

#include <protozero/varint.hpp>

#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_put.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_writer;

}   // namespace

std::uint64_t random_bits(unsigned bits) {
    std::random_device random;
    return ((std::uint64_t{random()} << 32) | random()) & ((std::uint64_t{1} << bits) - 1);
}

TracePackets::TracePackets(const std::filesystem::path& path, std::int64_t start_ns, TraceFile::Place place)
    : file_{path, place}, start_ns_{start_ns}, uuid_base_{random_bits(47) << 16} {}

std::int64_t TracePackets::relative(std::int64_t stamp_ns) const noexcept {
    return static_cast<std::int64_t>(wrapping_difference(stamp_ns, start_ns_));
}

TracePlace TracePackets::place(TraceSequence& sequence, std::int64_t stamp_ns) noexcept {
    const std::int64_t exact = relative(stamp_ns);
    sequence.last_ns = std::max(sequence.last_ns, exact);
    return {static_cast<std::uint64_t>(sequence.last_ns), wrapping_difference(sequence.last_ns, exact)};
}

std::uint64_t TracePackets::new_track(std::string_view name, int rank, CounterUnit unit) {
    const std::uint64_t uuid = uuid_base_ + ++next_uuid_;
    packet_.clear();
    {
        pbf_writer packet{packet_};
        packet.add_uint32(f::packet::sequence, 1);
        pbf_writer track{packet, f::packet::track};
        track.add_uint64(1, uuid);
        if (process_ == 0) {
            pbf_writer process{track, 3};
            process.add_int32(1, static_cast<std::int32_t>(::getpid()));
            process.add_string(6, name.data(), name.size());
        } else {
            track.add_string(2, name.data(), name.size());
            track.add_uint64(5, process_);
            if (unit == CounterUnit::percent)
                pbf_writer{track, 8}.add_string(6, "%");
            else if (unit != CounterUnit::none)
                pbf_writer{track, 8}.add_enum(3, static_cast<int>(unit));
            track.add_int32(12, rank);
        }
        if (process_ == 0)
            track.add_enum(11, 3);   // children are ordered by rank
    }
    add_packet();
    if (process_ == 0)
        process_ = uuid;
    return uuid;
}

void TracePackets::name_thread(std::uint64_t tid, std::string_view name) {
    const auto [uuid, added] = thread_uuids_.try_emplace(tid, uuid_base_ + next_uuid_ + 1);
    next_uuid_ += added ? 1 : 0;
    packet_.clear();
    {
        pbf_writer packet{packet_};
        packet.add_uint32(f::packet::sequence, 1);
        pbf_writer track{packet, f::packet::track};
        track.add_uint64(1, uuid->second);
        pbf_writer thread{track, 4};
        thread.add_int32(1, static_cast<std::int32_t>(::getpid()));
        thread.add_int64(2, static_cast<std::int64_t>(tid));
        thread.add_string(5, name.data(), name.size());
    }
    add_packet();
}

TraceSequence TracePackets::new_sequence(std::uint64_t track, const std::vector<std::string>& names) noexcept {
    return {.id = next_sequence_++, .track = track, .names = &names};
}

void TracePackets::open(TraceSequence& sequence) {
    if (sequence.opened && sequence.names_written == sequence.names->size())
        return;
    packet_.clear();
    {
        pbf_writer packet{packet_};
        packet.add_uint32(f::packet::sequence, sequence.id);
        packet.add_uint32(f::packet::flags, f::packet::cleared);
        if (!sequence.opened)
            packet.add_bool(f::packet::first_on_sequence, true);
        {
            pbf_writer defaults{packet, f::packet::defaults};
            defaults.add_uint32(f::packet::clock, f::relative_clock);
            pbf_writer{defaults, f::packet::event}.add_uint64(f::event::track, sequence.track);
        }
        pbf_writer interned{packet, f::packet::interned};
        std::uint64_t number = 0;
        for (const std::string& name : *sequence.names) {
            pbf_writer entry{interned, 2};
            entry.add_uint64(1, ++number);
            entry.add_string(2, name);
        }
    }
    add_packet();
    sequence.opened = true;
    sequence.names_written = sequence.names->size();
}

void TracePackets::add_name(const TraceSequence& sequence, std::uint64_t number, std::string_view name) {
    packet_.clear();
    {
        pbf_writer packet{packet_};
        packet.add_uint32(f::packet::sequence, sequence.id);
        packet.add_uint32(f::packet::flags, f::packet::needs_names);
        pbf_writer names{packet, f::packet::interned};
        pbf_writer entry{names, 2};
        entry.add_uint64(1, number);
        entry.add_string(2, name.data(), name.size());
    }
    add_packet();
}

// Most packets of a file are events without a record. All their lengths are below 128, so they are composed by hand,
// with the same bytes as pbf_writer.
void TracePackets::bare(TraceSequence& sequence, std::uint8_t type, std::uint32_t name, std::int64_t stamp_ns) {
    constexpr auto key = [](f::Tag tag, protozero::pbf_wire_type wire) {
        return static_cast<char>(protozero::tag_and_type(tag, wire));
    };
    using enum protozero::pbf_wire_type;
    std::array<char, 48> bytes;
    char* at = bytes.data() + 2;
    *at++ = key(f::packet::timestamp, varint);
    at += protozero::add_varint_to_buffer(at, place(sequence, stamp_ns).timestamp_ns);
    *at++ = key(f::packet::sequence, varint);
    at += protozero::add_varint_to_buffer(at, sequence.id);
    if (name != 0) {
        *at++ = key(f::packet::flags, varint);
        *at++ = static_cast<char>(f::packet::needs_names);
    }
    *at++ = key(f::packet::event, length_delimited);
    char* const length = at++;
    *at++ = key(f::event::type, varint);
    *at++ = static_cast<char>(type);
    if (name != 0) {
        *at++ = key(f::event::name, varint);
        at += protozero::add_varint_to_buffer(at, name);
    }
    *length = static_cast<char>(at - length - 1);
    bytes[0] = key(f::trace_packet, length_delimited);
    bytes[1] = static_cast<char>(at - bytes.data() - 2);
    file_.block().append(bytes.data(), at);
}

void TracePackets::event(const TraceSequence& sequence, std::uint8_t type, std::uint32_t name, TracePlace at,
                         f::Tag record_tag) {
    event_.clear();
    pbf_writer event{event_};
    event.add_uint32(f::event::type, type);
    put(event, f::event::name, name);
    for (const std::uint64_t flow : flows_)
        event.add_fixed64(f::event::flows, flow);
    for (const std::uint64_t flow : ended_flows_)
        event.add_fixed64(f::event::ended_flows, flow);
    flows_.clear();
    ended_flows_.clear();
    add_record(event, record_tag);
    add_event(sequence, at, name != 0);
}

void TracePackets::counter(const TraceSequence& sequence, TracePlace at, std::int64_t value, f::Tag record_tag) {
    event_.clear();
    pbf_writer event{event_};
    event.add_uint32(f::event::type, f::event::counter);
    event.add_int64(f::event::counter_value, value);
    add_record(event, record_tag);
    add_event(sequence, at, false);
}

void TracePackets::message(f::Tag tag, std::string_view content) {
    packet_.clear();
    pbf_writer packet{packet_};
    packet.add_uint32(f::packet::sequence, 1);
    packet.add_message(tag, content.data(), content.size());
    add_packet();
}

void TracePackets::add_record(pbf_writer& event, f::Tag record_tag) {
    if (record_tag == 0)
        return;
    event.add_message(record_tag, record_);
    file_.count_record();
}

/// Writes a packet with the event in `event_`.
void TracePackets::add_event(const TraceSequence& sequence, TracePlace at, bool needs_names) {
    packet_.clear();
    pbf_writer packet{packet_};
    packet.add_uint64(f::packet::timestamp, at.timestamp_ns);
    packet.add_uint32(f::packet::sequence, sequence.id);
    if (needs_names)
        packet.add_uint32(f::packet::flags, f::packet::needs_names);
    packet.add_message(f::packet::event, event_);
    add_packet();
}

void TracePackets::add_packet() { pbf_writer{file_.block()}.add_message(f::trace_packet, packet_); }

}   // namespace drawpoint
