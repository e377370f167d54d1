#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/event.hpp>
#include <drawpoint/instrumentation/ledger/folded.hpp>

namespace drawpoint {

/// Stands where something was not measured or did not happen.
inline constexpr std::int64_t no_stamp = std::numeric_limits<std::int64_t>::min();

/// One piece of the loop's time, in nanoseconds.
struct SpanRow {
    Span span{};
    std::int64_t begin_ns = 0, ns = 0;
    bool operator==(const SpanRow&) const = default;
};

/// A part of a side column: rows `first` … `first + count - 1`.
struct Slice {
    std::uint32_t first = 0, count = 0;
    bool operator==(const Slice&) const = default;
};

/// One step: draw + batch, and the time after it up to the next draw (its span `between`).
struct StepRow {
    std::uint32_t step = 0;   ///< running number in the run, over all phases, from 0
    std::uint32_t epoch = 0;
    std::uint32_t batch = 0;   ///< number in its pass, from 0: the batch's own where it knows it, else the step's
    Phase phase{};
    StepStatus status{};
    std::uint32_t size = 0;   ///< samples in the batch; 0 when it was never drawn
    std::int64_t draw_begin_ns = 0, draw_ns = 0, batch_ns = 0;
    std::optional<double> loss;   ///< what the learner said, if it was asked
    /// Of batch_ns, what the loop's thread spent computing, and waiting for a core.
    std::optional<std::int64_t> cpu_ns, run_queue_ns;   ///< absent: not measured
    /// Of its `between`, waiting for a core in the reading that measured these: the kernel looks there whether the
    /// thread's slice is over.
    std::optional<std::int64_t> between_run_queue_ns;
    Slice spans;   ///< of `Ledger::spans`, in order of time; the pieces tile draw, batch and between
    /// Equal bits of the loss, so that NaN equals itself.
    bool operator==(const StepRow&) const noexcept;
};

/// Whole passes: the fit, each epoch, each training and validation pass.
struct PassRow {
    PassKind kind{};
    std::uint32_t epoch = 0;
    std::int64_t begin_ns = 0, end_ns = 0;   ///< first and last clock reading
    bool ended = true;                       ///< false: the recording stops inside (a killed run)
    Slice spans;                             ///< pieces inside this pass and in no step and no inner pass
    std::int64_t folded_ns = 0;              ///< pieces of its steps that are in `Ledger::folded`
    bool operator==(const PassRow&) const = default;
};

/// The last draw of a source of unknown length: it found no batch and belongs to no step.
struct EndOfDataRow {
    std::uint32_t epoch = 0;
    Phase phase{};
    std::int64_t begin_ns = 0, ns = 0;
    bool operator==(const EndOfDataRow&) const = default;
};

/// ABANDONED: prefetched and never drawn. FAILED: drawn as an exception.
enum class BatchStatus : std::uint8_t { taken, abandoned, failed };

/// The life of one batch. Stamps are absolute nanoseconds, `no_stamp` where it did not happen.
struct BatchRow {
    std::uint32_t epoch = 0, batch = 0;
    std::uint32_t slot = 0;      ///< the batch's place among the loader's D + 1
    std::uint8_t pipeline = 0;   ///< of `Ledger::pipelines`
    BatchStatus status{};
    std::optional<std::uint16_t> collate_worker;   ///< who collated it; absent: nobody, or nobody that is recorded
    std::uint32_t size = 0;                        ///< samples
    std::uint64_t bytes = 0;                       ///< of batch memory
    std::uint32_t ready_batches = 0;               ///< waiting right after this one was taken
    std::int64_t admitted_ns = no_stamp, first_claim_ns = no_stamp, last_done_ns = no_stamp;
    std::int64_t collate_begin_ns = no_stamp, collate_end_ns = no_stamp;
    std::int64_t transfer_issue_ns = no_stamp, transfer_done_ns = no_stamp;
    std::int64_t offered_ns = no_stamp, taken_ns = no_stamp;   ///< abandoned: taken_ns is when it was given up
    bool operator==(const BatchRow&) const = default;
};

/// One stage's share of a sample, in nanoseconds.
struct StageRow {
    std::int64_t begin_ns = 0, ns = 0;
    std::int64_t cpu_ns = no_stamp;   ///< of these, what its thread spent computing; `no_stamp`: not measured
    bool operator==(const StageRow&) const = default;
};

enum class SampleStatus : std::uint8_t { complete, failed };

/// One sample's way through the stages of its pipeline, on one worker; or that of a run of `samples`, made by one call.
struct SampleRow {
    std::uint64_t index = 0;   ///< in the data set; of a run, the first one's
    std::uint32_t epoch = 0, batch = 0;
    std::uint32_t slot = 0;      ///< place in its batch; of a run, the first one's
    std::uint32_t samples = 1;   ///< in consecutive places
    std::uint16_t worker = 0;
    std::uint8_t pipeline = 0;
    SampleStatus status{};
    std::uint64_t bytes = 0;                                         ///< read from storage
    std::int64_t begin_ns = 0;                                       ///< when the worker took it up
    std::int64_t read_begin_ns = no_stamp, read_end_ns = no_stamp;   ///< of a read ahead of the worker
    /// Of the thread that read it, CPU from the end of its read before; `no_stamp`: not measured.
    std::int64_t read_cpu_ns = no_stamp, read_run_queue_ns = no_stamp;
    std::optional<std::int64_t> cpu_ns, run_queue_ns;   ///< the worker's; absent: not measured
    Slice stages;   ///< of `Ledger::stages`; fewer than the pipeline has when it failed
    bool operator==(const SampleRow&) const = default;
};

/// Stands where batches come as they are finished.
inline constexpr std::uint32_t any_order = std::numeric_limits<std::uint32_t>::max();

/// A loader: its name and its stages' names, in order. Rows name it by its position in `Ledger::pipelines`.
struct PipelineRow {
    std::string name;
    std::vector<std::string> stages;
    std::uint32_t batch_size = 0, num_workers = 0, prefetch_depth = 0;
    std::uint32_t max_overtakes = 0;      ///< of a batch by younger ones; 0: in order, `any_order`: however many
    std::uint32_t read_concurrency = 0;   ///< reads ahead of the workers at a time; 0: they read for themselves
    std::uint64_t memory_budget = 0;      ///< bytes; 0: none
    bool operator==(const PipelineRow&) const = default;
};

/// From `at_ns` on a loader runs with other numbers: those of `PipelineRow`.
struct SettingRow {
    std::int64_t at_ns = 0;
    std::uint8_t pipeline = 0;
    std::uint32_t num_workers = 0, prefetch_depth = 0, max_overtakes = 0, read_concurrency = 0;
    std::uint64_t memory_budget = 0;
    bool operator==(const SettingRow&) const = default;
};

/// What the machine and this process had used by `at_ns`: totals since some moment before the recording, of which only
/// differences mean anything. `no_stamp`: the system does not say.
struct HostRow {
    std::int64_t at_ns = 0;
    std::int64_t own_cpu_ns = no_stamp;     ///< of this process, all its threads
    std::int64_t busy_ns = no_stamp;        ///< of all processes, on the cores this one may use
    std::int64_t steal_ns = no_stamp;       ///< taken from those cores by the hypervisor
    std::int64_t throttled_ns = no_stamp;   ///< of the cgroup, for its quota's sake
    std::int64_t cpu_pressure_ns = no_stamp, io_pressure_ns = no_stamp, memory_pressure_ns = no_stamp;   ///< PSI "some"
    std::int64_t major_faults = no_stamp, involuntary_switches = no_stamp;   ///< of this process
    std::int64_t resident_bytes = no_stamp;                                  ///< now
    bool operator==(const HostRow&) const = default;
};

/// A sample that could not be loaded.
struct FailureRow {
    std::uint64_t index = 0;
    std::uint32_t epoch = 0, batch = 0;
    std::uint8_t pipeline = 0;
    std::string path, stage, message;
    bool operator==(const FailureRow&) const = default;
};

/// Ring numbers from here on are those of threads that record operators, in the order of their first call; the last one,
/// `first_operator_ring + 512`, stands for all threads beyond.
inline constexpr std::uint32_t first_operator_ring = (1u << 16) + 1;

/// Records a full ring or a full file did not take: how many, over which time, of which ring (0 = the loop's, n = worker
/// n - 1's, from `first_operator_ring` on those of operators). An operator not taken is one record, and so is a lost end.
struct DroppedRow {
    std::uint64_t records = 0;
    std::int64_t from_ns = 0, to_ns = 0;
    std::uint32_t ring = 0;
    bool operator==(const DroppedRow&) const = default;
};

/// From `at_ns` on, batches admitted keep slices and flows of every n-th batch, samples of every m-th only.
struct ThinningRow {
    std::int64_t at_ns = 0;
    std::uint32_t slices_every = 1, samples_every = 1;
    bool operator==(const ThinningRow&) const = default;
};

/// Stands where a row names no name or stack.
inline constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();

/// A thread that recorded operators, allocations or stack samples, or a device's stream. Rows name it by its position in
/// `Ledger::threads`.
struct ThreadRow {
    std::uint64_t tid = 0;   ///< the system's thread id, or the stream's number
    std::string name;
    std::int32_t device = -1;   ///< -1: the host; else the device the stream belongs to
    bool operator==(const ThreadRow&) const = default;
};

/// What an operator row is, in Kineto's words. A region (`profile_region`) is a `user_annotation`.
enum class OperatorKind : std::uint8_t {
    cpu_op,
    user_annotation,
    python_function,
    runtime,
    kernel,
    memcpy,
    memset,
    other
};

/// One call of an operator, region or kernel. Calls of one thread nest.
struct OperatorRow {
    OperatorKind kind{};
    bool ended = true;                ///< false: the recording stops inside, or its end was lost
    std::uint32_t name = 0;           ///< of `Ledger::names`
    std::uint32_t thread = 0;         ///< of `Ledger::threads`
    std::uint32_t shapes = nothing;   ///< of `Ledger::names`: the inputs' sizes, "[[16, 3, 16, 16], [8], []]"
    std::uint32_t stack = nothing;    ///< of `Ledger::stacks`: who called it
    std::int64_t begin_ns = 0, ns = 0;
    std::int64_t sequence = -1;         ///< links a forward operator and its backward one; -1: none
    std::uint64_t forward_thread = 0;   ///< of a backward operator: LibTorch's number of the forward thread
    std::uint64_t flops = 0;            ///< floating-point operations, estimated from the shapes; 0: not known
    std::uint64_t correlation = 0;      ///< links a runtime call with its kernel; 0: none
    bool operator==(const OperatorRow&) const = default;
};

/// One allocation or release of tensor memory.
struct AllocationRow {
    std::int64_t at_ns = 0;
    std::uint32_t thread = 0;
    std::int32_t device = -1;   ///< -1: the host's memory
    std::int64_t bytes = 0;     ///< below 0: released
    std::uint64_t address = 0;
    std::int64_t total_allocated = 0;   ///< of the device, right after; 0: not known
    bool operator==(const AllocationRow&) const = default;
};

/// A place in the code. Both texts are positions in `Ledger::names`; `file` may be `nothing`.
struct FrameRow {
    std::uint32_t function = 0, file = nothing, line = 0;
    bool operator==(const FrameRow&) const = default;
};

/// A call stack as a path in a tree: this frame, called from `parent` (of `Ledger::stacks`; `nothing`: the outermost).
struct StackRow {
    std::uint32_t parent = nothing, frame = 0;
    bool operator==(const StackRow&) const = default;
};

/// Where a thread was at one moment, standing for `weight_ns` of its time. What it was doing then (action, stage, region) is
/// what the ledger's other rows say of that moment.
struct StackSampleRow {
    std::int64_t at_ns = 0;
    std::uint32_t thread = 0, stack = 0;
    std::int64_t weight_ns = 0;
    bool operator==(const StackSampleRow&) const = default;
};

/// A named text about the run: set any number of times, the last one counts.
using Fact = std::pair<std::string, std::string>;

/// Everything a run left behind: the one thing that reports and verdicts read, whether it comes from a live recorder, a
/// file, another program's trace or a simulation. All times are absolute nanoseconds. A value; comparing two compares
/// every field. Row order: steps by begin; batches by (pipeline, epoch, batch); samples by (pipeline, epoch, batch,
/// slot); operators by (thread, begin, longest first); names, threads, frames and stacks as they came; the rest by time.
/// `sort()` establishes it.
struct Ledger {
    std::int64_t start_ns = 0;   ///< the recorder's first reading
    std::vector<Fact> facts;     ///< sorted by key, one entry a key
    std::vector<PipelineRow> pipelines;
    std::vector<PassRow> passes;
    std::vector<StepRow> steps;
    std::vector<SpanRow> spans;   ///< side column of `steps` and `passes`
    std::vector<EndOfDataRow> ends_of_data;
    std::vector<BatchRow> batches;
    std::vector<SampleRow> samples;
    std::vector<StageRow> stages;   ///< side column of `samples`
    std::vector<FailureRow> failures;
    std::vector<SettingRow> settings;
    std::vector<HostRow> host;
    std::vector<DroppedRow> dropped;
    std::vector<ThinningRow> thinnings;
    std::vector<std::string> names;   ///< what operators, frames and shapes are called; rows hold positions
    std::vector<ThreadRow> threads;
    std::vector<OperatorRow> operators;   ///< by (thread, begin, longest first): a caller stands before what it calls
    std::vector<AllocationRow> allocations;
    std::vector<FrameRow> frames;
    std::vector<StackRow> stacks;   ///< a parent stands before its children
    std::vector<StackSampleRow> stack_samples;
    /// The oldest steps, batches and samples, where memory is bounded (`RecorderOptions::ledger_steps`). `summarize` and
    /// `max_residual_ns` count these in; whatever reads row by row sees the rows kept.
    Folded folded;

    [[nodiscard]] std::span<const SpanRow> spans_of(const StepRow&) const noexcept;
    [[nodiscard]] std::span<const SpanRow> spans_of(const PassRow&) const noexcept;
    [[nodiscard]] std::span<const StageRow> stages_of(const SampleRow&) const noexcept;

    /// The text last set for `key`, or nothing. O(log n).
    [[nodiscard]] std::optional<std::string_view> fact(std::string_view key) const noexcept;
    void set_fact(std::string_view key, std::string_view value);

    [[nodiscard]] std::uint64_t dropped_records() const noexcept;
    /// 1: every sample is there; n: those of every n-th batch, since some time in the run.
    [[nodiscard]] std::uint32_t thinned_to() const noexcept;

    /// Puts the side columns in their rows' order and drops what no row names.
    void pack();
    /// Puts all rows in their order and the side columns in their rows' order, so that equal runs compare equal.
    void sort();

    bool operator==(const Ledger&) const = default;
};

/// How long each action took in a step, in nanoseconds, by `Action`; `no_stamp` where an edge of it never happened.
using StepDurations = std::array<std::int64_t, action_count>;

/// All of a step's durations at once, as `duration_of` defines them. O(pieces), never allocates. Any thread.
[[nodiscard]] StepDurations durations_of(const Ledger&, const StepRow&) noexcept;

/// How long `action` took in this step, in nanoseconds, or nothing where an edge of it never happened. `step`, `draw`
/// and `batch` come from the step's own record; `callbacks`, `other` and `between` are sums of pieces. O(pieces).
[[nodiscard]] std::optional<std::int64_t> duration_of(const Ledger&, const StepRow&, Action) noexcept;

/// The largest |wall - sum of recorded pieces| over all passes, in nanoseconds: 0, or a piece is missing.
[[nodiscard]] std::int64_t max_residual_ns(const Ledger&) noexcept;

}   // namespace drawpoint
