#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include "instrumentation/ledger/definitions.hpp"
#include "instrumentation/trace/start_times.hpp"
#include "instrumentation/ledger/step_slices.hpp"
#include "instrumentation/trace/trace_packets.hpp"

namespace drawpoint {

/// Writes rows into a `.pftrace` file, each as a typed record, with slices, counters and flows for Perfetto's viewer. A
/// failed write ends the file; later calls do nothing. Use by one thread at a time. Throws std::bad_alloc.
class TraceWriter {
public:
    /// Creates or replaces the file and writes its first block. Throws std::system_error naming it if it can't be
    /// opened.
    TraceWriter(const std::filesystem::path&, const StartTimes&, TraceFile::Place = TraceFile::Place::at_first_block);
    // Without `close()` the file ends with the last block written.
    TraceWriter(const TraceWriter&) = delete;
    TraceWriter& operator=(const TraceWriter&) = delete;

    void sample(const SampleRow&, std::span<const StageRow>);
    void collate(std::uint16_t worker, std::int64_t begin_ns, std::int64_t end_ns);
    void batch(const BatchRow&);
    void step(const StepRow&, std::span<const SpanRow>);
    void pass_begin(const PassRow&);
    void pass(const PassRow&, std::span<const SpanRow>);
    void end_of_data(const EndOfDataRow&);
    void dropped(const DroppedRow&);
    void pipeline(const PipelineRow&, std::int64_t now_ns);
    void failure(const FailureRow&, std::int64_t now_ns);
    void setting(const SettingRow&);
    void order(const OrderRow&);
    void transfer(const TransferRow&);
    void device_step(const DeviceStepRow&);
    void host(const HostRow&);
    /// Totals of rows that are not in the file.
    void folded(const Folded&);
    void fact(std::string_view key, std::string_view value, std::int64_t now_ns);

    // Pass names, threads and stacks to `definitions()` before the rows that refer to them.
    void definitions(const Definitions&);
    void operator_begin(const OperatorRow&);
    /// Ends the thread's innermost operator.
    void operator_end(std::uint32_t thread, std::int64_t at_ns, bool lost);
    void allocation(const AllocationRow&);
    void stack_sample(const StackSampleRow&);

    /// Ends the block if its first record is nearly a second old.
    void end_block_if_due(std::chrono::steady_clock::time_point now) { packets_.file().end_block_if_due(now); }
    /// Ends open slices and the block, and closes the file.
    void close();
    TraceFile& file() noexcept { return packets_.file(); }

    /// Bytes so far, with those of the current block.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return file_bytes() + packets_.file().block().size(); }
    /// Of these, bytes of definitions, operators, allocations and stack samples; they have a separate limit.
    [[nodiscard]] std::uint64_t operator_bytes() const noexcept { return operator_bytes_; }
    [[nodiscard]] std::uint64_t file_bytes() const noexcept { return packets_.file().bytes(); }
    /// Why the file ended early; empty if it did not.
    [[nodiscard]] const std::string& error() const noexcept { return packets_.file().error(); }

private:
    /// A flow that has begun, and when.
    struct Flow {
        std::uint64_t id = 0;
        std::uint64_t timestamp_ns = 0;
    };
    /// A track of a thread. Its names are written before their first use, numbered by position in the ledger + 1.
    struct NamedTrack {
        TraceSequence sequence;
        std::vector<bool> named;   // whether a name has been written
        std::size_t open = 0;      // number of open slices
    };
    /// The tracks of one thread.
    struct ThreadTracks {
        std::optional<NamedTrack> operators, samples;
        std::map<std::int32_t, TraceSequence> allocations;   // by device; a device's sequences share its track
    };
    /// Allocated bytes of a device.
    struct DeviceTrack {
        std::uint64_t track = 0;
        std::int64_t bytes = 0;
    };
    enum Rank : int {
        rank_loop,
        rank_device,
        rank_copies,
        rank_ready_batches,
        rank_ready_bytes,
        rank_own_cpu,
        rank_other_cpu,
        rank_allocated_bytes,
        rank_batches,
        rank_workers,
        rank_operators = rank_workers + (1 << 16)
    };
    enum InstantName : std::uint32_t {
        name_run = 1,
        name_fact,
        name_pipeline,
        name_setting,
        name_failure,
        name_dropped,
        name_folded,
        name_order
    };
    using BatchKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;   // pipeline (0 for steps), epoch, batch
    static constexpr std::size_t definitions_bytes = 32u << 10;                 // per packet

    void write_run();
    void instant(InstantName, TracePlace, std::uint32_t record_tag);
    void end_record() { packets_.file().end_block_if_large(); }
    // trace_loader.cpp
    TraceSequence& worker(std::uint16_t);
    TraceSequence& lane(std::uint16_t pipeline, std::uint32_t slot);
    void stage_slices(TraceSequence&, const SampleRow&, std::span<const StageRow>, std::size_t most);
    void counter(TraceSequence&, std::int64_t stamp_ns, std::uint64_t value, std::optional<std::uint64_t>& last);
    template <class Value>
    static void bound(std::map<BatchKey, Value>&);
    // trace_loop.cpp
    void add_spans(std::uint32_t spans_tag, std::uint32_t gaps_tag, std::int64_t from_ns, std::span<const SpanRow>);
    void inner_slices(StepSlice::Where);
    void end_pass_slices();
    TraceSequence& of_device(std::optional<TraceSequence>&, std::string_view track, Rank);   // trace_device.cpp
    // trace_operators.cpp
    ThreadTracks& tracks_of(std::uint32_t thread);
    NamedTrack& named_track(std::optional<NamedTrack>&, std::string_view what, std::uint32_t thread);
    std::uint32_t interned(NamedTrack&, std::uint32_t name);
    std::string& definitions_record();
    void end_definitions(std::size_t more_than = definitions_bytes);
    void end_operator_record(std::size_t block_before);
    void end_operator_slices();

    TracePackets packets_;
    std::vector<std::uint64_t> values_, gaps_, idle_;   // scratch buffers, members so that they keep their memory
    std::vector<StepSlice> inner_;                      // likewise

    const std::vector<std::string> lane_names_, instant_names_, device_names_, no_names_;
    std::vector<std::string> loop_names_, worker_names_;
    std::vector<std::vector<std::uint32_t>> stage_names_;   // per pipeline, numbers in worker_names_
    TraceSequence loop_, instants_, ready_batches_, ready_bytes_;
    std::optional<TraceSequence> own_cpu_, other_cpu_, device_steps_, copies_;
    HostRow last_host_;
    std::vector<std::optional<TraceSequence>> workers_;
    std::map<std::pair<std::uint16_t, std::uint32_t>, TraceSequence> lanes_;
    std::optional<std::uint64_t> last_ready_batches_, last_ready_bytes_;
    std::vector<PassRow> open_passes_;
    std::size_t batch_bytes_ = 0;   // size of the last batch written, without its samples' flows

    Definitions definitions_;    // all definitions so far
    DefinitionPlaces defined_;   // how many the file has, and the threads of the packet begun
    ThreadPositions thread_positions_;
    std::vector<ThreadTracks> thread_tracks_;
    std::map<std::int32_t, DeviceTrack> device_tracks_;
    std::uint64_t operator_bytes_ = 0;

    // Flows that have not ended. Their number is bounded by dropping the oldest, since lost records leave some behind.
    const std::uint64_t flow_base_;
    std::uint64_t next_flow_ = 1;
    std::map<BatchKey, std::vector<Flow>> sample_flows_;
    std::map<BatchKey, Flow> batch_flows_;
};

}   // namespace drawpoint
