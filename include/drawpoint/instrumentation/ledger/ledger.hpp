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
