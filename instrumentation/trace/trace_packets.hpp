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

/// A stream of packets whose time never goes back, and the track that its slices stand on.
struct TraceSequence {
    std::uint32_t id = 0;
    std::uint64_t track = 0;
    const std::vector<std::string>* names = nullptr;   ///< number = position + 1
    std::size_t names_written = 0;
    std::int64_t last_ns = 0;
    bool opened = false;
};

/// A record's place in time: the packet's timestamp, and by how much the record is earlier.
struct TracePlace {
    std::uint64_t timestamp_ns = 0, early_ns = 0;
};

/// What a counter's values are; without one a track holds slices. The numbers are Perfetto's, which has none for percent.
enum class CounterUnit : int { none = 0, count = 2, bytes = 3, percent = -1 };

/// Writes Perfetto's packets: tracks, slices, counters, each with a record if it has one. An event takes the record and the
/// flows that were set before it. One thread at a time. Throws std::bad_alloc.
class TracePackets {
public:
    /// `start_ns`: of the recording, from which timestamps count. Throws as TraceFile.
    TracePackets(const std::filesystem::path&, std::int64_t start_ns);

    [[nodiscard]] TraceFile& file() noexcept { return file_; }
    [[nodiscard]] const TraceFile& file() const noexcept { return file_; }
    /// Bytes of the block at hand: what has been written since is the difference.
    [[nodiscard]] std::size_t position() noexcept { return file_.block().size(); }

    [[nodiscard]] std::int64_t start_ns() const noexcept { return start_ns_; }
    [[nodiscard]] std::int64_t relative(std::int64_t stamp_ns) const noexcept;
    TracePlace place(TraceSequence&, std::int64_t stamp_ns) noexcept;

    [[nodiscard]] TraceSequence new_sequence(std::uint64_t track, const std::vector<std::string>& names) noexcept;
    /// The first one is the process, which the others belong to.
    std::uint64_t new_track(std::string_view name, int rank, CounterUnit = CounterUnit::none);
    /// What a thread of this process is called, in the traces' table of threads: it gets no track to be drawn. A later name
    /// replaces an earlier one.
    void name_thread(std::uint64_t tid, std::string_view name);
    /// Before the sequence's events: its defaults, and its names again when some were added.
    void open(TraceSequence&);
    /// A name more on a sequence without a list of names.
    void add_name(const TraceSequence&, std::uint64_t number, std::string_view name);

    /// The record of the next event, from its begin; its fields are added by put().
    [[nodiscard]] std::string& new_record() noexcept {
        record_.clear();
        return record_;
    }
    [[nodiscard]] std::string& record() noexcept { return record_; }
    /// A flow for the next event to begin or to end.
    void begin_flow(std::uint64_t flow) { flows_.push_back(flow); }
    void end_flow(std::uint64_t flow) { ended_flows_.push_back(flow); }
    [[nodiscard]] std::size_t ended_flows() const noexcept { return ended_flows_.size(); }

    /// A begin or an end without a record.
    void bare(TraceSequence&, std::uint8_t type, std::uint32_t name, std::int64_t stamp_ns);
    void event(const TraceSequence&, std::uint8_t type, std::uint32_t name, TracePlace,
               protozero::pbf_tag_type record_tag);
    void counter(const TraceSequence&, TracePlace, std::int64_t value, protozero::pbf_tag_type record_tag = 0);
    /// A packet of the file itself, which has neither time nor track.
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
    // Scratch, kept for its memory.
    std::string record_, event_, packet_;
    std::vector<std::uint64_t> flows_, ended_flows_;
};

/// So many random bits, from the system.
[[nodiscard]] std::uint64_t random_bits(unsigned bits);

}   // namespace drawpoint
