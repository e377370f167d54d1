#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include "instrumentation/trace/trace_file.hpp"
#include <protozero/pbf_writer.hpp>

namespace drawpoint {

/// A stream of packets with non-decreasing timestamps, and the track that shows its slices.
struct TraceSequence {
    std::uint32_t id = 0;
    std::uint64_t track = 0;
    const std::vector<std::string>* names = nullptr;   ///< number = position + 1
    std::size_t names_written = 0;
    std::int64_t last_ns = 0;
    bool opened = false;
};

/// A record's place in time: its packet's timestamp, and by how much the record is earlier than that.
struct TracePlace {
    std::uint64_t timestamp_ns = 0, early_ns = 0;
};

/// The unit of a counter track; `none` is a track of slices. The numbers are Perfetto's, which has none for percent.
enum class CounterUnit : int { none = 0, count = 2, bytes = 3, percent = -1 };

/// Writes Perfetto's packets: tracks, slices and counters, with or without a record. An event takes the record and the
/// flows that were set before it. Use by one thread at a time. Throws std::bad_alloc.
class TracePackets {
public:
    /// `start_ns`: start of the recording, from which timestamps count. Throws like TraceFile.
    TracePackets(const std::filesystem::path&, std::int64_t start_ns, TraceFile::Place);

    [[nodiscard]] TraceFile& file() noexcept { return file_; }
    [[nodiscard]] const TraceFile& file() const noexcept { return file_; }
    /// Size of the current block in bytes. The difference of two calls is the number of bytes written in between.
    [[nodiscard]] std::size_t position() noexcept { return file_.block().size(); }

    [[nodiscard]] std::int64_t start_ns() const noexcept { return start_ns_; }
    [[nodiscard]] std::int64_t relative(std::int64_t stamp_ns) const noexcept;
    TracePlace place(TraceSequence&, std::int64_t stamp_ns) noexcept;

    [[nodiscard]] TraceSequence new_sequence(std::uint64_t track, const std::vector<std::string>& names) noexcept;
    /// Creates a track and returns its id. The first one is the process, the parent of all others.
    std::uint64_t new_track(std::string_view name, int rank, CounterUnit = CounterUnit::none);
    /// Names a thread of this process in the trace's table of threads, without a visible track. A later name replaces
    /// an earlier one.
    void name_thread(std::uint64_t tid, std::string_view name);
    /// Call it before writing events of the sequence. Writes its defaults and names, and again if names were added.
    void open(TraceSequence&);
    /// Adds a name to a sequence without a list of names.
    void add_name(const TraceSequence&, std::uint64_t number, std::string_view name);

    /// Empties the record of the next event and returns it; put() adds its fields.
    [[nodiscard]] std::string& new_record() noexcept {
        record_.clear();
        return record_;
    }
    [[nodiscard]] std::string& record() noexcept { return record_; }
    /// Flows that the next event begins or ends.
    void begin_flow(std::uint64_t flow) { flows_.push_back(flow); }
    void end_flow(std::uint64_t flow) { ended_flows_.push_back(flow); }
    [[nodiscard]] std::size_t ended_flows() const noexcept { return ended_flows_.size(); }

    /// Writes an event without a record.
    void bare(TraceSequence&, std::uint8_t type, std::uint32_t name, std::int64_t stamp_ns);
    void event(const TraceSequence&, std::uint8_t type, std::uint32_t name, TracePlace,
               protozero::pbf_tag_type record_tag);
    void counter(const TraceSequence&, TracePlace, std::int64_t value, protozero::pbf_tag_type record_tag = 0);
    /// Writes a packet without timestamp and track.
    void message(protozero::pbf_tag_type, std::string_view content);

private:
    void add_record(protozero::pbf_writer& event, protozero::pbf_tag_type record_tag);
    void add_event(const TraceSequence&, TracePlace, bool needs_names);
    void add_packet();

    TraceFile file_;
    std::int64_t start_ns_;
    std::uint64_t uuid_base_, next_uuid_ = 0, process_ = 0;
    std::map<std::uint64_t, std::uint64_t> thread_uuids_;   // by tid
    std::uint32_t next_sequence_ = 2;
    // Scratch buffers, members so that they keep their memory.
    std::string record_, event_, packet_;
    std::vector<std::uint64_t> flows_, ended_flows_;
};

/// A random number of `bits` bits, from the system.
[[nodiscard]] std::uint64_t random_bits(unsigned bits);

}   // namespace drawpoint
