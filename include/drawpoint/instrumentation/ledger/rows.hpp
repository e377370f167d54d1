#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/event.hpp>
#include <drawpoint/instrumentation/ledger/detail/column.hpp>
#include <drawpoint/instrumentation/ledger/loader_kind.hpp>
#include <drawpoint/instrumentation/ledger/order_rule.hpp>

namespace drawpoint {

/// The value of a stamp or duration that was not measured or did not happen.
inline constexpr std::int64_t no_stamp = std::numeric_limits<std::int64_t>::min();

// In all rows, a member that names a moment (`begin_ns`, `at_ns`) is a stamp: nanoseconds of the recording's clock. One
// that names an activity (`ns`, `draw_ns`, `cpu_ns`) is a duration in nanoseconds. A *sample* is one item of the data
// set; a *run* of samples is several that the source made in one call.

/// One piece of the loop's time.
struct SpanRow {
    Span span{};
    std::int64_t begin_ns = 0, ns = 0;
    bool operator==(const SpanRow&) const = default;
};

/// A range of a side column: entries `first` … `first + count - 1`.
struct Slice {
    std::uint32_t first = 0, count = 0;
    bool operator==(const Slice&) const = default;
};

/// One step: draw, batch, and the time after it until the next draw (its span `between`).
struct StepRow {
    std::uint32_t step = 0;   ///< counts over both phases and all epochs of a fit (a LoopTrack), from 0
    std::uint32_t epoch = 0;
    std::uint32_t batch = 0;   ///< number in its pass, from 0: the batch's own if it has one, else the step's
    Phase phase{};
    StepStatus status{};
    std::uint32_t size = 0;                                      ///< samples in the batch; 0: no batch was drawn
    std::int64_t draw_begin_ns = 0, draw_ns = 0, batch_ns = 0;   ///< the batch begins where the draw ends
    std::optional<double> loss;                                  ///< what the learner returned, if it was asked
    /// Of batch_ns, the time the loop's thread spent computing and waiting for a core; absent: not measured.
    std::optional<std::int64_t> cpu_ns, run_queue_ns;
    /// Of `between`, the wait for a core that measuring these caused: the kernel checks at that system call whether the
    /// thread's time slice is over. Absent: not measured.
    std::optional<std::int64_t> between_run_queue_ns;
    Slice spans;   ///< of `Ledger::spans`, by time; the pieces tile draw, batch and between
    /// Compares the bits of the loss, so that NaN equals itself.
    bool operator==(const StepRow&) const noexcept;
};

/// A whole pass: the fit, an epoch, a training pass or a validation pass.
struct PassRow {
    PassKind kind{};
    std::uint32_t epoch = 0;
    std::int64_t begin_ns = 0, end_ns = 0;   ///< first and last clock reading
    bool ended = true;                       ///< false: the recording stops inside (a killed run)
    Slice spans;                             ///< pieces of this pass outside its steps and inner passes
    std::int64_t folded_ns = 0;              ///< pieces of its steps that were folded into `Ledger::folded`
    /// Time before the pass's edges and its steps' beginnings that `LoopTrack` was given no mark for, by clock readings
    /// of its own: what was done then is in the piece after it. Without times below 1 µs.
    std::int64_t unmarked_ns = 0;
    /// Of `LoopTrack::mark_until` in this pass: by how much stamps lay before the last reading, a batch that was ready
    /// before its draw excepted, and by how much they lay in the future. The stamps were cut.
    std::int64_t clamped_ns = 0, ahead_ns = 0;
    bool operator==(const PassRow&) const = default;
};

/// The last draw of a source of unknown length: it found no batch and belongs to no step.
struct EndOfDataRow {
    std::uint32_t epoch = 0;
    Phase phase{};
    std::int64_t begin_ns = 0, ns = 0;
    bool operator==(const EndOfDataRow&) const = default;
};

/// `taken`: drawn. `abandoned`: prefetched and never drawn. `failed`: drawing it threw an exception.
enum class BatchStatus : std::uint8_t { taken, abandoned, failed };

/// The life of one batch. It is *admitted* when the loader gives it a slot and opens it to the workers, and complete
/// when its last sample is done and, if it needs that, it is collated. When the loader's order lets it go next, it is
/// *offered*: from then on the loop can draw it. Stamps that are `no_stamp`: it did not happen.
struct BatchRow {
    std::uint32_t epoch = 0, batch = 0;   ///< the pass, and the batch's number in it, from 0
    std::uint32_t slot = 0;               ///< the batch's place among the loader's prefetch_depth + 1 slots
    std::uint16_t pipeline = 0;           ///< of `Ledger::pipelines`
    BatchStatus status{};
    std::optional<std::uint16_t> collate_worker;   ///< who collated it; absent: nobody, or an unrecorded thread
    std::uint32_t size = 0;                        ///< samples
    std::uint64_t bytes = 0;                       ///< of the batch's memory
    std::uint32_t ready_batches = 0;               ///< complete batches waiting right after this one was taken
    /// When it was admitted, its first sample was begun, its last one done.
    std::int64_t admitted_ns = no_stamp, first_claim_ns = no_stamp, last_done_ns = no_stamp;
    std::int64_t collate_begin_ns = no_stamp, collate_end_ns = no_stamp;
    /// CPU time of collating, and its wait for a core; `no_stamp`: not measured.
    std::int64_t collate_cpu_ns = no_stamp, collate_run_queue_ns = no_stamp;
    std::int64_t transfer_issue_ns = no_stamp, transfer_done_ns = no_stamp;   ///< of the copy to a device
    std::int64_t offered_ns = no_stamp, taken_ns = no_stamp;   ///< abandoned: `taken_ns` is when it was given up
    /// Of a batch made in another process: when that began to send it to the loop's, and when it was sent, with the CPU
    /// time that took. `no_stamp`: it was made in the loop's process.
    std::int64_t delivery_begin_ns = no_stamp, delivery_end_ns = no_stamp, delivery_cpu_ns = no_stamp;
    /// CPU time of the thread that made it, and of all of that process, since the batch before that it made.
    std::int64_t worker_cpu_ns = no_stamp, process_cpu_ns = no_stamp;
    /// What the loop's thread computed, and waited for a core, in the draw that received it; `no_stamp`: not measured.
    std::int64_t receive_cpu_ns = no_stamp, receive_run_queue_ns = no_stamp;
    bool operator==(const BatchRow&) const = default;
};

/// The time that one sample spent in one stage.
struct StageRow {
    std::int64_t begin_ns = 0, ns = 0;
    std::int64_t cpu_ns = no_stamp;   ///< of `ns`, the time its thread spent computing; `no_stamp`: not measured
    bool operator==(const StageRow&) const = default;
};

enum class SampleStatus : std::uint8_t { complete, failed };

/// The way of one sample, or of a run of samples made by one call, through the stages of its pipeline on one worker.
struct SampleRow {
    std::uint64_t index = 0;   ///< in the data set; of a run, the first sample's
    std::uint32_t epoch = 0, batch = 0;
    std::uint32_t slot = 0;      ///< place in its batch; of a run, the first sample's
    std::uint32_t samples = 1;   ///< 1, or the length of the run, in consecutive places
    std::uint16_t worker = 0;
    std::uint16_t pipeline = 0;
    SampleStatus status{};
    std::uint64_t bytes = 0;                                         ///< read from storage
    std::int64_t begin_ns = 0;                                       ///< when the worker began with it
    std::int64_t read_begin_ns = no_stamp, read_end_ns = no_stamp;   ///< of a read ahead of the worker
    /// CPU time and wait for a core of the reading thread since the end of its previous read; `no_stamp`: not measured.
    std::int64_t read_cpu_ns = no_stamp, read_run_queue_ns = no_stamp;
    /// Of the time from `begin_ns` to the end of the last stage: what the worker computed and waited for a core;
    /// absent: not measured.
    std::optional<std::int64_t> cpu_ns, run_queue_ns;
    Slice stages;   ///< of `Ledger::stages`; a failed sample has fewer than its pipeline
    bool operator==(const SampleRow&) const = default;
};

/// A loader: its name and its stages' names, in order. Rows name it by its position in `Ledger::pipelines`.
struct PipelineRow {
    std::string name;
    std::vector<std::string> stages;
    /// As the loader was made; the depth as reduced by a memory budget (`facts::asked_depth_prefix`).
    std::uint32_t batch_size = 0, num_workers = 0, prefetch_depth = 0;
    OrderRule order;
    std::uint32_t read_concurrency = 0;   ///< reads ahead of the workers at a time; 0: workers read for themselves
    std::uint64_t memory_budget = 0;      ///< bytes; 0: none
    LoaderKind kind{};
    bool operator==(const PipelineRow&) const = default;
};

/// A change of a running loader's numbers, in effect from `at_ns` on. Members as in PipelineRow.
struct SettingRow {
    std::int64_t at_ns = 0;
    std::uint16_t pipeline = 0;
    std::uint32_t num_workers = 0, prefetch_depth = 0;
    OrderRule order;
    std::uint32_t read_concurrency = 0;
    std::uint64_t memory_budget = 0;
    bool operator==(const SettingRow&) const = default;
};

/// The time that a loader's sampler took for the order of samples of a pass, if it computes one (`Sampler::order`).
struct OrderRow {
    std::int64_t begin_ns = 0, ns = 0;
    std::int64_t cpu_ns = no_stamp;   ///< of `ns`, what its thread computed
    std::uint32_t epoch = 0;
    std::uint16_t pipeline = 0;
    std::optional<std::uint16_t> worker;   ///< who computed it; absent: the loop
    bool operator==(const OrderRow&) const = default;
};

/// The copy of a batch to a device.
struct TransferRow {
    std::uint32_t epoch = 0, batch = 0;   ///< as in BatchRow
    std::uint16_t pipeline = 0;
    std::uint64_t bytes = 0;
    std::int64_t issue_ns = 0;               ///< when the loop issued it
    std::int64_t begin_ns = 0, end_ns = 0;   ///< when the device made it
    bool operator==(const TransferRow&) const = default;
};

/// A step on a device, timed there. The stream that computes had done the step before at `free_ns` (of a pass's first
/// step: when the pass began); until `queued_ns` the loop gave it nothing of a step, so it was *dry*; until `begin_ns`
/// it waited for the batch's copy; until `end_ns` it had work of the step, with the gaps between its kernels. A row's
/// `free_ns` is the `end_ns` of the step before it, if that has a row. What callbacks of `after_batch` give the device
/// is not the step's, and counts as dry.
struct DeviceStepRow {
    std::uint32_t step = 0, epoch = 0;   ///< as in StepRow
    Phase phase{};
    std::int64_t free_ns = 0, queued_ns = 0, begin_ns = 0, end_ns = 0;   ///< on the device
    /// When the device had done the work up to the loss, and when the loop had given it all of that; of a learner that
    /// is not driven by fit(): as `end_ns` and `host_end_ns`.
    std::int64_t forward_ns = 0, host_forward_ns = 0;
    /// When the loop gave the device this step's first command, and its last.
    std::int64_t host_queued_ns = 0, host_end_ns = 0;
    /// The device's stamps may be off by so much against the loop's, all in the same direction.
    std::int64_t uncertainty_ns = 0;
    /// Of the dry time, what the loop did meanwhile: the pieces of its draw, in which `dry_callbacks_ns` has all that
    /// is in none of the others; the rest of steps; between them; and from its command until the device had it.
    std::int64_t dry_starved_ns = 0, dry_handoff_ns = 0, dry_transfer_ns = 0, dry_callbacks_ns = 0;
    std::int64_t dry_step_ns = 0, dry_between_ns = 0, dry_launch_ns = 0;
    std::int64_t draw_ns = 0;     ///< of the step's StepRow
    std::optional<double> loss;   ///< of the step, read when the device had done it; the ledger's StepRow has it, too
    /// Compares the bits of the loss, so that NaN equals itself.
    bool operator==(const DeviceStepRow&) const noexcept;
};

/// What the machine and this process had used by `at_ns`: totals since some time before the recording, so only
/// differences mean something. `no_stamp`: the system does not report it.
struct HostRow {
    std::int64_t at_ns = 0;
    std::int64_t own_cpu_ns = no_stamp;   ///< of all threads of this process
    /// Of processes that work for this one (`Recorder::add_child`); `no_stamp`: there are none.
    std::int64_t children_cpu_ns = no_stamp;
    std::int64_t busy_ns = no_stamp;        ///< of all processes, on the cores this one may use
    std::int64_t steal_ns = no_stamp;       ///< taken from those cores by the hypervisor
    std::int64_t throttled_ns = no_stamp;   ///< of the cgroup, throttled by its CPU quota
    /// Of the whole machine: pressure stall totals, "some" (/proc/pressure).
    std::int64_t cpu_pressure_ns = no_stamp, io_pressure_ns = no_stamp, memory_pressure_ns = no_stamp;
    std::int64_t major_faults = no_stamp, involuntary_switches = no_stamp;   ///< of this process
    std::int64_t resident_bytes = no_stamp;                                  ///< at `at_ns`, not a total
    bool operator==(const HostRow&) const = default;
};

/// A sample that could not be loaded.
struct FailureRow {
    std::uint64_t index = 0;
    std::uint32_t epoch = 0, batch = 0;
    std::uint16_t pipeline = 0;
    std::string path, stage, message;
    bool operator==(const FailureRow&) const = default;
};

/// Rings with this number and above belong to threads that record operators, in the order of their first call. The last
/// one, `first_operator_ring + 512`, stands for all further threads.
inline constexpr std::uint32_t first_operator_ring = (1u << 16) + 1;
/// `DroppedRow::ring` of records in parts of a file that are damaged: of any kind.
inline constexpr std::uint32_t damaged_part = first_operator_ring - 1;

/// Records lost because a ring was full or a limit of the recording was reached: how many, when, and of which ring (0:
/// the loop's; n: worker n - 1's; from `first_operator_ring` on: of operators; `damaged_part`: of none). A lost
/// operator counts as one record, and so does a lost end.
struct DroppedRow {
    std::uint64_t records = 0;
    std::int64_t from_ns = 0, to_ns = 0;
    std::uint32_t ring = 0;
    bool operator==(const DroppedRow&) const = default;
};

/// Of batches admitted from `at_ns` on, the recording keeps samples of every `samples_every`-th only, and slices and
/// flows (which only viewers of the file show) of every `slices_every`-th. Only in recordings of earlier versions.
struct ThinningRow {
    std::int64_t at_ns = 0;
    std::uint32_t slices_every = 1, samples_every = 1;
    bool operator==(const ThinningRow&) const = default;
};

/// The position that stands for no name, stack or other row.
inline constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();

/// A thread that recorded operators, allocations or stack samples, or a device's stream. Other rows name it by its
/// position in `Ledger::threads`.
struct ThreadRow {
    std::uint64_t tid = 0;   ///< the system's thread id, or the stream's number
    std::string name;
    std::int32_t device = -1;   ///< -1: the host; else the stream's device
    bool operator==(const ThreadRow&) const = default;
};

/// The kind of an operator row, in Kineto's terms. A region (`profile_region`) is a `user_annotation`.
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
    std::uint32_t name = 0;           ///< in `Ledger::names`
    std::uint32_t thread = 0;         ///< in `Ledger::threads`
    std::uint32_t shapes = nothing;   ///< in `Ledger::names`: the inputs' sizes, "[[16, 3, 16, 16], [8], []]"
    std::uint32_t stack = nothing;    ///< in `Ledger::stacks`: who called it
    std::int64_t begin_ns = 0, ns = 0;
    std::int64_t sequence = -1;         ///< shared by a forward operator and its backward operator; -1: none
    std::uint64_t forward_thread = 0;   ///< of a backward operator: LibTorch's number of the forward thread
    std::uint64_t flops = 0;            ///< floating-point operations, estimated from the shapes; 0: unknown
    std::uint64_t correlation = 0;      ///< shared by a runtime call and its kernel; 0: none
    bool operator==(const OperatorRow&) const = default;
};

/// One allocation or release of tensor memory.
struct AllocationRow {
    std::int64_t at_ns = 0;
    std::uint32_t thread = 0;
    std::int32_t device = -1;   ///< -1: the host's memory
    std::int64_t bytes = 0;     ///< negative: released
    std::uint64_t address = 0;
    std::int64_t total_allocated = 0;   ///< on the device, right after; 0: unknown
    bool operator==(const AllocationRow&) const = default;
};

/// A place in the code. `function` and `file` are positions in `Ledger::names`; `file` may be `nothing`, and `line` 0,
/// if unknown.
struct FrameRow {
    std::uint32_t function = 0, file = nothing, line = 0;
    bool operator==(const FrameRow&) const = default;
};

/// A call stack, as a path in a tree: this frame, called from `parent` (in `Ledger::stacks`; `nothing`: outermost).
struct StackRow {
    std::uint32_t parent = nothing, frame = 0;
    bool operator==(const StackRow&) const = default;
};

/// Where a thread was at one moment; it stands for `weight_ns` of its time. What the thread was doing then (action,
/// stage, region) follows from the ledger's other rows.
struct StackSampleRow {
    std::int64_t at_ns = 0;
    std::uint32_t thread = 0, stack = 0;
    std::int64_t weight_ns = 0;
    bool operator==(const StackSampleRow&) const = default;
};

/// The enumerator's name, as in exports: "taken", "cpu_op". Static storage.
[[nodiscard]] std::string_view name_of(BatchStatus) noexcept;
[[nodiscard]] std::string_view name_of(SampleStatus) noexcept;
[[nodiscard]] std::string_view name_of(OperatorKind) noexcept;

// The columns of each row: `columns` calls `with` with all of them, in the order of exports.
// clang-format off: one column per line
namespace schema {

constexpr auto columns(const SpanRow*, auto with) {
    using R = SpanRow;
    return with(Column{"span", &R::span, Composed{}},
                Column{"begin_ns", &R::begin_ns, Composed{}},
                Column{"ns", &R::ns, Composed{}});
}

constexpr auto columns(const StageRow*, auto with) {
    using R = StageRow;
    return with(Column{"begin_ns", &R::begin_ns, Composed{}},
                Column{"ns", &R::ns, Composed{}},
                Column{"cpu_ns", &R::cpu_ns, Stamp{}});
}

constexpr auto columns(const StepRow*, auto with) {
    using R = StepRow;
    return with(Column{"step", &R::step, Key{4}},
                Column{"epoch", &R::epoch, Key{1}},
                Column{"batch", &R::batch, Key{2}},
                Column{"phase", &R::phase, Key{3}},
                Column{"status", &R::status, Count{5}},
                Column{"size", &R::size, Count{7}},
                Column{"draw_begin_ns", &R::draw_begin_ns, Time{}},
                Column{"draw_ns", &R::draw_ns, Composed{}},
                Column{"batch_ns", &R::batch_ns, Composed{}},
                Column{"loss", &R::loss, Measured{8}},
                Column{"cpu_ns", &R::cpu_ns, Measured{10}},
                Column{"run_queue_ns", &R::run_queue_ns, Measured{11}},
                Column{"between_run_queue_ns", &R::between_run_queue_ns, Measured{12}},
                Column{"spans", &R::spans, Part{}});
}

constexpr auto columns(const PassRow*, auto with) {
    using R = PassRow;
    return with(Column{"kind", &R::kind, Key{1}},
                Column{"epoch", &R::epoch, Key{2}},
                Column{"begin_ns", &R::begin_ns, Composed{}},
                Column{"end_ns", &R::end_ns, Time{}},
                Column{"ended", &R::ended, Composed{}},
                Column{"unmarked_ns", &R::unmarked_ns, Count{6}},
                Column{"clamped_ns", &R::clamped_ns, Count{7}},
                Column{"ahead_ns", &R::ahead_ns, Count{8}},
                Column{"folded_ns", &R::folded_ns, Count{9}},
                Column{"spans", &R::spans, Part{}});
}

constexpr auto columns(const EndOfDataRow*, auto with) {
    using R = EndOfDataRow;
    return with(Column{"epoch", &R::epoch, Key{1}},
                Column{"phase", &R::phase, Key{2}},
                Column{"begin_ns", &R::begin_ns, Time{}},
                Column{"ns", &R::ns, Count{3}});
}

constexpr auto columns(const BatchRow*, auto with) {
    using R = BatchRow;
    return with(Column{"epoch", &R::epoch, Key{1}},
                Column{"batch", &R::batch, Key{2}},
                Column{"slot", &R::slot, Key{6}},
                Column{"pipeline", &R::pipeline, Key{7}},
                Column{"status", &R::status, Count{8}},
                Column{"size", &R::size, Count{4}},
                Column{"bytes", &R::bytes, Count{9}},
                Column{"ready_batches", &R::ready_batches, Count{10}},
                Column{"admitted_ns", &R::admitted_ns, Time{.optional = true}},
                Column{"first_claim_ns", &R::first_claim_ns, Stamp{}},
                Column{"last_done_ns", &R::last_done_ns, Stamp{}},
                Column{"collate_begin_ns", &R::collate_begin_ns, Stamp{}},
                Column{"collate_end_ns", &R::collate_end_ns, Stamp{}},
                Column{"collate_worker", &R::collate_worker, Measured{12}},
                Column{"collate_cpu_ns", &R::collate_cpu_ns, Measured{13}},
                Column{"collate_run_queue_ns", &R::collate_run_queue_ns, Measured{14}},
                Column{"transfer_issue_ns", &R::transfer_issue_ns, Stamp{}},
                Column{"transfer_done_ns", &R::transfer_done_ns, Stamp{}},
                Column{"offered_ns", &R::offered_ns, Stamp{}},
                Column{"taken_ns", &R::taken_ns, Stamp{}},
                Column{"delivery_begin_ns", &R::delivery_begin_ns, Stamp{}},
                Column{"delivery_end_ns", &R::delivery_end_ns, Stamp{}},
                Column{"delivery_cpu_ns", &R::delivery_cpu_ns, Measured{15}},
                Column{"worker_cpu_ns", &R::worker_cpu_ns, Measured{17}},
                Column{"process_cpu_ns", &R::process_cpu_ns, Measured{18}},
                Column{"receive_cpu_ns", &R::receive_cpu_ns, Measured{19}},
                Column{"receive_run_queue_ns", &R::receive_run_queue_ns, Measured{20}});
}

constexpr auto columns(const SampleRow*, auto with) {
    using R = SampleRow;
    return with(Column{"index", &R::index, Key{1}},
                Column{"epoch", &R::epoch, Key{2}},
                Column{"batch", &R::batch, Key{3}},
                Column{"slot", &R::slot, Key{4}},
                Column{"samples", &R::samples, Count{.field = 13, .absent = 1}},
                Column{"worker", &R::worker, Key{12}},
                Column{"pipeline", &R::pipeline, Key{9}},
                Column{"status", &R::status, Count{8}},
                Column{"bytes", &R::bytes, Count{5}},
                Column{"begin_ns", &R::begin_ns, Time{}},
                Column{"read_begin_ns", &R::read_begin_ns, Before{14}},
                Column{"read_end_ns", &R::read_end_ns, Before{15}},
                Column{"read_cpu_ns", &R::read_cpu_ns, Measured{19}},
                Column{"read_run_queue_ns", &R::read_run_queue_ns, Measured{20}},
                Column{"cpu_ns", &R::cpu_ns, Composed{}},
                Column{"run_queue_ns", &R::run_queue_ns, Measured{7}},
                Column{"stages", &R::stages, Part{}});
}

constexpr auto columns(const PipelineRow*, auto with) {
    using R = PipelineRow;
    return with(Column{"name", &R::name, Key{1}},
                Column{"stages", &R::stages, Count{2}},
                Column{"batch_size", &R::batch_size, Count{3}},
                Column{"num_workers", &R::num_workers, Count{4}},
                Column{"prefetch_depth", &R::prefetch_depth, Count{5}},
                Column{"max_overtakes", &R::order, Order{6}},
                Column{"read_concurrency", &R::read_concurrency, Count{7}},
                Column{"memory_budget", &R::memory_budget, Count{8}},
                Column{"kind", &R::kind, Count{10}});
}

constexpr auto columns(const SettingRow*, auto with) {
    using R = SettingRow;
    return with(Column{"at_ns", &R::at_ns, Time{}},
                Column{"pipeline", &R::pipeline, Key{1}},
                Column{"num_workers", &R::num_workers, Count{2}},
                Column{"prefetch_depth", &R::prefetch_depth, Count{3}},
                Column{"max_overtakes", &R::order, Order{4}},
                Column{"read_concurrency", &R::read_concurrency, Count{6}},
                Column{"memory_budget", &R::memory_budget, Count{5}});
}

constexpr auto columns(const OrderRow*, auto with) {
    using R = OrderRow;
    return with(Column{"begin_ns", &R::begin_ns, Time{}},
                Column{"ns", &R::ns, Count{1}},
                Column{"cpu_ns", &R::cpu_ns, Measured{2}},
                Column{"epoch", &R::epoch, Key{3}},
                Column{"pipeline", &R::pipeline, Key{4}},
                Column{"worker", &R::worker, Measured{5}});
}

constexpr auto columns(const TransferRow*, auto with) {
    using R = TransferRow;
    return with(Column{"epoch", &R::epoch, Key{1}},
                Column{"batch", &R::batch, Key{2}},
                Column{"pipeline", &R::pipeline, Key{3}},
                Column{"bytes", &R::bytes, Count{4}},
                Column{"issue_ns", &R::issue_ns, Before{5}},
                Column{"begin_ns", &R::begin_ns, Before{6}},
                Column{"end_ns", &R::end_ns, Time{}});
}

constexpr auto columns(const DeviceStepRow*, auto with) {
    using R = DeviceStepRow;
    return with(Column{"step", &R::step, Key{1}},
                Column{"epoch", &R::epoch, Key{2}},
                Column{"phase", &R::phase, Key{3}},
                Column{"free_ns", &R::free_ns, Before{4}},
                Column{"queued_ns", &R::queued_ns, Before{5}},
                Column{"begin_ns", &R::begin_ns, Before{6}},
                Column{"end_ns", &R::end_ns, Time{}},
                Column{"host_queued_ns", &R::host_queued_ns, Before{7}},
                Column{"host_end_ns", &R::host_end_ns, Before{8}},
                Column{"uncertainty_ns", &R::uncertainty_ns, Count{9}},
                Column{"dry_starved_ns", &R::dry_starved_ns, Count{10}},
                Column{"dry_handoff_ns", &R::dry_handoff_ns, Count{11}},
                Column{"dry_transfer_ns", &R::dry_transfer_ns, Count{12}},
                Column{"dry_callbacks_ns", &R::dry_callbacks_ns, Count{13}},
                Column{"dry_step_ns", &R::dry_step_ns, Count{14}},
                Column{"dry_between_ns", &R::dry_between_ns, Count{15}},
                Column{"dry_launch_ns", &R::dry_launch_ns, Count{17}},
                Column{"draw_ns", &R::draw_ns, Count{18}},
                Column{"loss", &R::loss, Measured{19}},
                Column{"forward_ns", &R::forward_ns, Before{20}},
                Column{"host_forward_ns", &R::host_forward_ns, Before{21}});
}

constexpr auto columns(const HostRow*, auto with) {
    using R = HostRow;
    return with(Column{"at_ns", &R::at_ns, Time{}},
                Column{"own_cpu_ns", &R::own_cpu_ns, Measured{1}},
                Column{"busy_ns", &R::busy_ns, Measured{2}},
                Column{"steal_ns", &R::steal_ns, Measured{3}},
                Column{"throttled_ns", &R::throttled_ns, Measured{4}},
                Column{"cpu_pressure_ns", &R::cpu_pressure_ns, Measured{5}},
                Column{"io_pressure_ns", &R::io_pressure_ns, Measured{6}},
                Column{"memory_pressure_ns", &R::memory_pressure_ns, Measured{7}},
                Column{"major_faults", &R::major_faults, Measured{8}},
                Column{"involuntary_switches", &R::involuntary_switches, Measured{9}},
                Column{"resident_bytes", &R::resident_bytes, Measured{10}},
                Column{"children_cpu_ns", &R::children_cpu_ns, Measured{11}});
}

constexpr auto columns(const FailureRow*, auto with) {
    using R = FailureRow;
    return with(Column{"index", &R::index, Key{1}},
                Column{"epoch", &R::epoch, Key{2}},
                Column{"batch", &R::batch, Key{3}},
                Column{"pipeline", &R::pipeline, Key{7}},
                Column{"path", &R::path, Key{5}},
                Column{"stage", &R::stage, Key{4}},
                Column{"message", &R::message, Key{6}});
}

constexpr auto columns(const DroppedRow*, auto with) {
    using R = DroppedRow;
    return with(Column{"records", &R::records, Count{1}},
                Column{"from_ns", &R::from_ns, SinceStart{2}},
                Column{"to_ns", &R::to_ns, SinceStart{3}},
                Column{"ring", &R::ring, Key{4}});
}

constexpr auto columns(const ThinningRow*, auto with) {
    using R = ThinningRow;
    return with(Column{"at_ns", &R::at_ns, Time{}},
                Column{"slices_every", &R::slices_every, Key{1}},
                Column{"samples_every", &R::samples_every, Key{2}});
}

constexpr auto columns(const ThreadRow*, auto with) {
    using R = ThreadRow;
    return with(Column{"tid", &R::tid, Key{1}},
                Column{"name", &R::name, Count{2}},
                Column{"device", &R::device, PlusOne{3}});
}

constexpr auto columns(const OperatorRow*, auto with) {
    using R = OperatorRow;
    return with(Column{"kind", &R::kind, Key{.field = 3, .later_is_last = true}},
                Column{"ended", &R::ended, Composed{}},
                Column{"name", &R::name, Position{2}},
                Column{"thread", &R::thread, Position{1}},
                Column{"shapes", &R::shapes, PlusOne{4}},
                Column{"stack", &R::stack, PlusOne{5}},
                Column{"begin_ns", &R::begin_ns, Time{}},
                Column{"ns", &R::ns, Composed{}},
                Column{"sequence", &R::sequence, PlusOne{6}},
                Column{"forward_thread", &R::forward_thread, Count{7}},
                Column{"flops", &R::flops, Count{8}},
                Column{"correlation", &R::correlation, Count{9}});
}

constexpr auto columns(const AllocationRow*, auto with) {
    using R = AllocationRow;
    return with(Column{"at_ns", &R::at_ns, Time{}},
                Column{"thread", &R::thread, Position{1}},
                Column{"device", &R::device, PlusOne{2}},
                Column{"bytes", &R::bytes, Signed{3}},
                Column{"address", &R::address, Count{4}},
                Column{"total_allocated_bytes", &R::total_allocated,
                       Count{.field = 5, .field_name = "total_allocated"}});
}

constexpr auto columns(const FrameRow*, auto with) {
    using R = FrameRow;
    return with(Column{"function", &R::function, Position{1}},
                Column{"file", &R::file, PlusOne{2}},
                Column{"line", &R::line, Count{3}});
}

constexpr auto columns(const StackRow*, auto with) {
    using R = StackRow;
    return with(Column{"parent", &R::parent, PlusOne{1}},
                Column{"frame", &R::frame, Position{2}});
}

constexpr auto columns(const StackSampleRow*, auto with) {
    using R = StackSampleRow;
    return with(Column{"at_ns", &R::at_ns, Time{}},
                Column{"thread", &R::thread, Position{1}},
                Column{"stack", &R::stack, Position{2}},
                Column{"weight_ns", &R::weight_ns, Count{3}});
}
// clang-format on

/// Calls `with` with all columns of a row and returns its result.
template <class Row>
constexpr auto walk(auto with) {
    return columns(static_cast<const Row*>(nullptr), with);
}

}   // namespace schema
}   // namespace drawpoint
