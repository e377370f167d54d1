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
#include <drawpoint/instrumentation/recorder/records.hpp>

namespace drawpoint {

/// One worker thread's way into the recorder. Returned to the recorder for reuse when destroyed. One thread at a time.
class WorkerTrack {
public:
    WorkerTrack() noexcept = default;
    WorkerTrack(WorkerTrack&&) noexcept;
    WorkerTrack& operator=(WorkerTrack&&) noexcept;
    ~WorkerTrack();

    /// Hands a finished sample over. Never blocks or allocates: a full ring counts a drop. `row.worker` is filled in.
    void push(SampleRecord&) noexcept;
    /// Shows on the worker's track of the file that it collated a batch, between its samples. Never blocks or
    /// allocates: a full ring leaves it out and counts nothing. The ledger has it from the batch's row, which has no
    /// end where the batch was given up meanwhile.
    void push_collate(std::int64_t begin_ns, std::int64_t end_ns) noexcept;
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
    std::uint64_t bytes = 0;      ///< written to the file
    std::uint64_t events = 0;     ///< stamps in the records taken from the rings
    std::uint64_t dropped = 0;
    std::uint32_t thinned_to = 1;
    double writer_cpu_s = 0.0;   ///< of the writer thread
    double ns_per_event = 0.0;   ///< one stamp and its share of a push, measured when the recorder was made
    std::string error;           ///< why the file ends early ("run.pftrace: No space left on device"); empty: fine
};

/// Takes stamps from the loop and the workers through a ring per thread and turns them, on its one writer thread, into the
/// live `Ledger` and the file `run.pftrace`. It never throws into what it watches; what it cannot record it
/// counts, and a failing file ends the file, not the ledger. Outlives every loader, pass and fit that records into it.
class Recorder {
public:
    /// Records without a file.
    explicit Recorder(const RecorderOptions& = {}, const AnyClock& = AnyClock{});
    /// Records into `file` too, which is created or replaced at once. Throws std::system_error naming it if it can't be.
    explicit Recorder(const std::filesystem::path& file, const RecorderOptions& = {}, const AnyClock& = AnyClock{});
    /// `finish()`es: bounded by writing what the rings hold.
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// A stamp. About 10 ns. Any thread.
    [[nodiscard]] std::int64_t now_ns() const noexcept { return clock_.now_ns(); }
    [[nodiscard]] const AnyClock& clock() const noexcept { return clock_; }

    /// Announces a loader; its number in `Ledger::pipelines`. A second "train" is recorded as "train (2)". Any thread.
    /// Throws std::length_error past 255.
    std::uint8_t add_pipeline(const PipelineRow&);
    /// The name that this loader is recorded under. Any thread. Throws std::out_of_range for a number never given.
    [[nodiscard]] std::string pipeline_name(std::uint8_t pipeline) const;
    /// A ring for a worker thread, reused when a track given back is free. Any thread; allocates at most once per worker.
    [[nodiscard]] WorkerTrack add_worker();
    /// What to keep of the n-th batch a loader admits. Any thread, O(1).
    [[nodiscard]] BatchDetail batch_detail(std::uint64_t serial) const noexcept;

    // From the loop's thread only. None allocates. Steps and batches are kept: a loop that outruns the writer for long waits for
    // it, some 0.2 s at most while the writer is stuck, and from then on a full ring counts a drop.
    void push(const BatchRow&, BatchDetail) noexcept;
    void push(const StepRow&, std::span<const SpanRow> spans) noexcept;   // `spans` ≤ max_step_spans; row.spans unused
    void push(const PassRow&, std::span<const SpanRow> spans) noexcept;   // at the pass's end
    void push_begin(const PassRow&) noexcept;                             // at its begin, so that the slice opens
    void push(const EndOfDataRow&) noexcept;

    // Operators, from any thread, as that thread's; each through a ring of its own, `ring_records` large, made at its first
    // call (allocates then, never later), for at most 512 threads. What a full ring did not take, what comes from further
    // threads and what names something never added is dropped and counted. Not from a signal handler.
    /// Begins an operator now. Returns what `end_operator` takes. About 25 ns with its end.
    std::uint32_t begin_operator(const OperatorBegin&) noexcept;
    /// Ends it now, and what was begun inside it and not ended. Same thread as its begin: on another one it does nothing.
    void end_operator(std::uint32_t ticket) noexcept;
    /// The same at a moment already past (a reading of `clock()`), not before what this thread recorded last.
    std::uint32_t begin_operator(const OperatorBegin&, std::int64_t at_ns) noexcept;
    void end_operator(std::uint32_t ticket, std::int64_t at_ns) noexcept;
    /// `row.thread` is filled in: the calling thread.
    void push(AllocationRow) noexcept;
    /// A sample of the thread `row.thread` (see `add_thread`), pushed by whoever took it.
    void push(const StackSampleRow&) noexcept;

    // Positions in the ledger's columns of the same name; equal rows get equal positions. Any thread; a lock and a look-up:
    // keep what they return. `nothing` when memory ran out, or when the row names something never added.
    std::uint32_t add_name(std::string_view) noexcept;
    /// A thread is its device and tid; a name that is not empty replaces the one before.
    std::uint32_t add_thread(const ThreadRow&) noexcept;
    /// The calling thread, under this name.
    std::uint32_t add_this_thread(std::string_view name) noexcept;
    std::uint32_t add_frame(const FrameRow&) noexcept;
    std::uint32_t add_stack(const StackRow&) noexcept;

    // Rare and allocating. Any thread.
    /// From `row.at_ns` on the loader runs with these numbers.
    void add_setting(const SettingRow& row) noexcept;
    void add_failure(const FailureRow&) noexcept;
    void set_fact(std::string_view key, std::string_view value) noexcept;

    /// Everything recorded up to this call, sorted. Waits for the writer (≤ some ms). Any thread.
    [[nodiscard]] Ledger ledger();
    /// Writes what is left, ends the file and joins the writer; later pushes are dropped. Idempotent. Any thread.
    void finish() noexcept;
    [[nodiscard]] RecordingState state();

private:
    struct Impl;
    AnyClock clock_;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
