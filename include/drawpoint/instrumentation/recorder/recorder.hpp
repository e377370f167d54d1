#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/event.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/ledger/records.hpp>
#include <drawpoint/instrumentation/recorder/detail/packed_samples.hpp>
#include <drawpoint/instrumentation/recorder/recorder_options.hpp>

namespace drawpoint {

/// A worker thread's connection to the recorder, given back for reuse when destroyed. One thread at a time.
class WorkerTrack {
public:
    WorkerTrack() noexcept = default;
    WorkerTrack(WorkerTrack&&) noexcept;
    WorkerTrack& operator=(WorkerTrack&&) noexcept;
    ~WorkerTrack();

    /// Hands over a finished sample and sets `row.worker`. Never blocks or allocates; a full ring counts a drop.
    void push(SampleRecord&) noexcept;
    /// Shows in the file, on the worker's track, that it collated a batch. Never blocks or allocates; if the ring is
    /// full, this is left out and not counted. The ledger takes it from the batch's row, which has no end of collating
    /// if the batch was given up meanwhile.
    void push_collate(std::int64_t begin_ns, std::int64_t end_ns) noexcept;
    /// The worker computed an order of samples; sets `row.worker`. Never blocks or allocates; a full ring counts a
    /// drop.
    void push(OrderRow row) noexcept;
    [[nodiscard]] std::uint16_t worker() const noexcept;
    [[nodiscard]] explicit operator bool() const noexcept { return ring_ != nullptr; }

private:
    friend class Recorder;
    struct Ring;
    explicit WorkerTrack(Ring* ring) noexcept : ring_{ring} {}
    Ring* ring_ = nullptr;
};

/// What recording has cost and lost so far.
struct RecordingState {
    std::filesystem::path file;   ///< empty: no file
    std::uint64_t bytes = 0;      ///< in the file, which becomes shorter when it is written anew (`limit_bytes`)
    std::uint64_t events = 0;     ///< time stamps in the records that the writer has taken
    std::uint64_t dropped = 0;    ///< records lost to full rings, limits or missing memory
    double writer_cpu_s = 0.0;    ///< CPU time of the writer thread
    double ns_per_event = 0.0;    ///< of one stamp and its share of a push, measured when the recorder was made
    std::string error;            ///< why the file ends early ("run.pftrace: No space left on device"); empty: no error
};

/// Takes records from the loop and the workers through one ring per thread. Its writer thread turns them into the live
/// `Ledger` and the file `run.pftrace`. It never throws into the code it observes: it counts what it cannot record, and
/// if the file fails, the ledger goes on. Must outlive every loader, pass and fit that records into it.
class Recorder {
public:
    /// Records without a file. Throws std::invalid_argument for options out of range, std::system_error if the system
    /// refuses a thread.
    explicit Recorder(const RecorderOptions& = {}, const AnyClock& = AnyClock{});
    /// Also records into `file`, which is created, or replaced by a new file once the first block is written (in this
    /// constructor), and locked (flock) until finish(). A pipe needs a reader, and ends the recording if it takes
    /// nothing for two seconds. Throws as above, and std::system_error naming the file on failure, or if another
    /// recording is being written to it; a file that is there then stays.
    explicit Recorder(const std::filesystem::path& file, const RecorderOptions& = {}, const AnyClock& = AnyClock{});
    /// Calls `finish()`; takes as long as writing what the rings hold.
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// A clock reading. About 10 ns. Any thread.
    [[nodiscard]] std::int64_t now_ns() const noexcept { return clock_.now_ns(); }
    [[nodiscard]] const AnyClock& clock() const noexcept { return clock_; }

    /// Announces a loader and returns its position in `Ledger::pipelines`. A second "train" is recorded as "train (2)".
    /// Any thread. Throws std::length_error beyond 65536 loaders.
    std::uint16_t add_pipeline(const PipelineRow&);
    /// The name that this loader is recorded under. Any thread. Throws std::out_of_range for an unknown loader.
    [[nodiscard]] std::string pipeline_name(std::uint16_t pipeline) const;
    /// A ring for a worker thread: one that was given back, or a new one. Any thread; may allocate. Throws
    /// std::length_error beyond 65536 workers.
    [[nodiscard]] WorkerTrack add_worker();

    // Only from the loop's thread; these never allocate. So that no step or batch is lost, a loop that is far ahead of
    // the writer waits for it. If the writer is stuck it waits at most 0.2 s; after that a full ring counts drops.
    void push(const BatchRow&) noexcept;
    /// Records at most `max_step_spans` of `spans`; ignores `row.spans`.
    void push(const StepRow&, std::span<const SpanRow> spans) noexcept;
    /// At the pass's end; `spans` as above.
    void push(const PassRow&, std::span<const SpanRow> spans) noexcept;
    /// At the pass's beginning, so that the file shows it open.
    void push_begin(const PassRow&) noexcept;
    void push(const EndOfDataRow&) noexcept;
    void push(const OrderRow&) noexcept;   ///< of an order that the loop computed itself
    void push(const TransferRow&) noexcept;
    /// After the StepRow of the same step. Sets the row's dry times by what the loop did: they need not be set.
    void push(const DeviceStepRow&) noexcept;

    // Operators, from any thread, recorded as the calling thread's. Each thread has a ring of `ring_records`, allocated
    // at its first call, for at most 512 threads. Records are dropped and counted if the ring is full, if they come
    // from further threads, or if they name something never added. Not from a signal handler.
    /// Begins an operator now and returns the ticket for `end_operator`; 0 if it was dropped. About 25 ns including its
    /// end.
    std::uint32_t begin_operator(const OperatorBegin&) noexcept;
    /// Ends it now, with whatever began inside it and has not ended. Must be called on the thread that began it;
    /// elsewhere, and for ticket 0, it does nothing.
    void end_operator(std::uint32_t ticket) noexcept;
    /// The same at a time in the past (a reading of `clock()`), but not before this thread's last record.
    std::uint32_t begin_operator(const OperatorBegin&, std::int64_t at_ns) noexcept;
    void end_operator(std::uint32_t ticket, std::int64_t at_ns) noexcept;
    /// Sets `row.thread` to the calling thread.
    void push(AllocationRow) noexcept;
    /// A sample of the thread `row.thread` (see `add_thread`), which may be another one than the caller.
    void push(const StackSampleRow&) noexcept;

    // Positions in the ledger's columns of the same name; equal rows have equal positions. Any thread; each call takes
    // a lock and a look-up, so keep the result. `nothing` if memory runs out or the row names something never added.
    // Names are cut to 1 MiB.
    std::uint32_t add_name(std::string_view) noexcept;
    /// A thread is identified by its device and tid; a name that is not empty replaces the previous one.
    std::uint32_t add_thread(const ThreadRow&) noexcept;
    /// The calling thread, under this name.
    std::uint32_t add_this_thread(std::string_view name) noexcept;
    std::uint32_t add_frame(const FrameRow&) noexcept;
    std::uint32_t add_stack(const StackRow&) noexcept;

    // For rare events: these allocate. Texts are cut to 1 MiB. Without memory, and after finish(), they are dropped and
    // counted. Any thread.
    /// The loader runs with this setting from `row.at_ns` on.
    void add_setting(const SettingRow& row) noexcept;
    void add_failure(const FailureRow&) noexcept;
    /// Samples that another process made and stamped by this recorder's clock. About a microsecond and a copy of the
    /// bytes; while 64 MiB wait for the writer, further ones are dropped and counted. Before the row of their batch.
    void add_samples(PackedSamples) noexcept;
    /// A process that works for this one: what it computes counts in `HostRow::children_cpu_ns`.
    void add_child(std::int64_t process_id) noexcept;
    /// The last value set for a key counts. For keys that reports read, see facts.hpp.
    void set_fact(std::string_view key, std::string_view value) noexcept;

    /// A copy of everything recorded up to this call, sorted. Waits for the writer (a few ms), then O(rows log rows).
    /// Also after finish(). Any thread. Empty in a forked child, where finish() and the destructor do nothing; what
    /// else locks there may hang.
    [[nodiscard]] Ledger ledger();
    /// Writes what is left, ends the file and joins the writer; later pushes are dropped. Idempotent. Any thread.
    void finish() noexcept;
    /// As of the writer's last turn, at most 0.1 s ago. Any thread.
    [[nodiscard]] RecordingState state();

private:
    struct Impl;
    AnyClock clock_;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
