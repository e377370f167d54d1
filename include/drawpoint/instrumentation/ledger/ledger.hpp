#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/event.hpp>
#include <drawpoint/instrumentation/ledger/folded.hpp>
#include <drawpoint/instrumentation/ledger/rows.hpp>

namespace drawpoint {

/// A named text about the run: key and value. It may be set any number of times; the last value counts. For the keys
/// that reports read, see facts.hpp.
using Fact = std::pair<std::string, std::string>;

/// Everything recorded about a run. Reports and verdicts read nothing else, whether the ledger comes from a live
/// recorder, a file, another program's trace or a simulation. A value type; comparing two compares every field.
///
/// **Times.** A member that names a moment (`begin_ns`, `at_ns`, `taken_ns`) is in nanoseconds of the recording's
/// clock: CLOCK_MONOTONIC, so usually since the machine booted; in an imported trace, Unix time if it says so; in a
/// simulation, virtual time. A member that names an activity (`ns`, `draw_ns`, `cpu_ns`) is a duration in nanoseconds.
///
/// **Order.** A ledger is *sorted* when its rows are in the order that `sort()` makes: steps by start; batches and
/// failures by (pipeline, epoch, batch); samples by (pipeline, epoch, batch, slot); operators by (thread, start,
/// longest first); pipelines, names, threads, frames and stacks as they came, since rows refer to them by position; the
/// rest by time. Recorders, files, imports, windows and replays give sorted ledgers. Functions that read a ledger
/// expect one, so call `sort()` after making or changing rows by hand.
///
/// `spans` and `stages` are side columns: rows refer to ranges of them by `Slice`.
struct Ledger {
    std::int64_t start_ns = 0;   ///< when the recording began: the recorder's first clock reading
    std::vector<Fact> facts;     ///< sorted by key; keys are unique
    std::vector<PipelineRow> pipelines;
    std::vector<PassRow> passes;
    std::vector<StepRow> steps;
    std::vector<SpanRow> spans;   ///< side column of `steps` and `passes`: pieces of the loop's time
    std::vector<EndOfDataRow> ends_of_data;
    std::vector<BatchRow> batches;
    std::vector<SampleRow> samples;
    std::vector<StageRow> stages;   ///< side column of `samples`: the time in each stage
    std::vector<FailureRow> failures;
    std::vector<SettingRow> settings;
    std::vector<OrderRow> orders;   ///< of samples, computed for passes
    std::vector<TransferRow> transfers;
    std::vector<DeviceStepRow> device_steps;
    std::vector<HostRow> host;
    std::vector<DroppedRow> dropped;
    std::vector<ThinningRow> thinnings;
    std::vector<std::string> names;   ///< texts of operators, frames and shapes; rows hold positions
    std::vector<ThreadRow> threads;
    std::vector<OperatorRow> operators;   ///< by (thread, start, longest first): a caller stands before what it calls
    std::vector<AllocationRow> allocations;
    std::vector<FrameRow> frames;
    std::vector<StackRow> stacks;   ///< a parent stands before its children
    std::vector<StackSampleRow> stack_samples;
    /// Totals of the oldest steps, batches and samples, if memory is bounded (`RecorderOptions::ledger_bytes`).
    /// `summarize` and `max_residual_ns` include them; code that goes through rows sees only those kept.
    Folded folded;

    // The pieces or stages of a row, which must be a row of this ledger or a copy of one. They are in `spans` or
    // `stages`: valid until these change (`pack`, `sort`) or the ledger is destroyed. O(1).
    [[nodiscard]] std::span<const SpanRow> spans_of(const StepRow&) const noexcept;
    [[nodiscard]] std::span<const SpanRow> spans_of(const PassRow&) const noexcept;
    [[nodiscard]] std::span<const StageRow> stages_of(const SampleRow&) const noexcept;

    /// The text last set for `key`, if any; valid until facts change. O(log n).
    [[nodiscard]] std::optional<std::string_view> fact(std::string_view key) const noexcept;
    /// O(log n), for a new key O(n).
    void set_fact(std::string_view key, std::string_view value);

    /// Records lost in all: the sum over `dropped`.
    [[nodiscard]] std::uint64_t dropped_records() const noexcept;
    /// 1: every sample is recorded; n: from some point of the run on, only the samples of every n-th batch.
    [[nodiscard]] std::uint32_t thinned_to() const noexcept;

    /// Rewrites the side columns in the order of their rows, without entries that no row refers to, and the rows'
    /// slices with them. O(rows); needs both columns twice meanwhile.
    void pack();
    /// Sorts all rows (stable) and packs the side columns, so that equal runs compare equal. O(rows log rows).
    void sort();

    bool operator==(const Ledger&) const = default;
};

/// How long each action took in a step, in nanoseconds, by `Action`; `no_stamp` if one of its edges (`action_spans`)
/// never happened, and for actions outside of steps (`fit` … `valid`, `end_of_data`).
using StepDurations = std::array<std::int64_t, action_count>;

/// All of a step's durations, as `duration_of` defines them. O(pieces), never allocates. Any thread.
[[nodiscard]] StepDurations durations_of(const Ledger&, const StepRow&) noexcept;

/// How long `action` took in this step, in nanoseconds; nullopt where `StepDurations` has no_stamp. `step`, `draw` and
/// `batch` come from the step's own record; `callbacks`, `other` and `between` are sums of pieces. O(pieces): for
/// several actions of a step call `durations_of`.
[[nodiscard]] std::optional<std::int64_t> duration_of(const Ledger&, const StepRow&, Action) noexcept;

/// The time that a run took: the sum of its outermost passes, which are the fits where there are any; without passes,
/// from the first step's begin to the last one's end. In nanoseconds. O(passes). Any thread.
[[nodiscard]] std::int64_t wall_ns(const Ledger&) noexcept;

/// How much of the recorded passes' time is in no piece or in more than one, in nanoseconds: each piece must begin
/// where the one before it ended, the first and the last where their outermost pass does. Of folded steps only the
/// sum of the pieces is known: with them it is an estimate, and 0 only if nothing is missing. O(pieces log pieces). May
/// throw std::bad_alloc.
[[nodiscard]] std::int64_t untiled_ns(const Ledger&);

/// The largest |wall time - sum of recorded pieces| of any one pass, in nanoseconds: 0 unless a piece is missing.
/// Counts the pieces of inner passes, steps and ends of data, also of folded steps. O(rows). Any thread.
[[nodiscard]] std::int64_t max_residual_ns(const Ledger&) noexcept;

}   // namespace drawpoint
