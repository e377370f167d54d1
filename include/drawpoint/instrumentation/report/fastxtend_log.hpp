#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/report/fastxtend.hpp>

namespace drawpoint {

struct SpanRow;
struct StepRow;

/// The durations of one step, in seconds. `spans`: its pieces (`Ledger::spans_of`, `LoopTrack::step_spans`). nullopt if
/// it drew no batch, failed, or has a `before_batch` piece without an `after_batch` one. Without both, as in a loop
/// that fires no events, draw and batch are the step's own.
[[nodiscard]] std::optional<FastxtendBatch> fastxtend_batch(const StepRow& step, std::span<const SpanRow> spans);

/// A value to log and its key: "throughput/forward", or "samples_per_second/train_forward" in 0.0.19.
struct FastxtendLogValue {
    std::string_view name;   ///< static storage
    double value = 0;
};

/// Decides after which training batches to log, and computes the samples per second to log. These are ratios of means
/// over the last `rolling_average` batches: size / (draw + batch) for step, size / duration for the others, and for
/// draw the throughput that drawing costs, size / (draw + batch) - size / batch. The report (`FastxtendReport`) has
/// means of each batch's ratio, so its numbers differ from these. An action missing in some batches (accumulated
/// gradients) is averaged over the batches that have it, and omitted if none has it. `simple_old` logs each batch by
/// itself. Keeps at most `rolling_average` batches.
class FastxtendLiveLog {
public:
    /// `rolling_average` ≥ 1 (0 counts as 1): batches per window, and between two log points. `drop_first_batch`
    /// starts the count one batch later.
    FastxtendLiveLog(ProfileMode mode, std::size_t rolling_average, bool drop_first_batch);

    /// Adds the next training batch. Returns the values to log after it, or none.
    [[nodiscard]] std::vector<FastxtendLogValue> add(const FastxtendBatch& batch);

private:
    ProfileMode mode_;
    std::size_t window_, waiting_, counted_ = 0;   // waiting_: batches left before the count starts
    std::deque<FastxtendBatch> last_;
};

/// All values of one quantity of a fit.
struct FastxtendSummary {
    std::string name;   ///< "train/forward_throughput", in samples per second, or "train/forward_duration", in seconds
    std::vector<double> values;
};

/// The values that the original sends to a logger after a fit, besides its tables: "fit/duration",
/// "fit/epoch_duration", and for each pass and action the durations, and the throughput of its batches if the report
/// shows one for it. `train/…` and `valid/…` lack their phase's first batch if `drop_first_batch`; `fit/…` has it.
/// `fit/train_duration` and `fit/valid_duration` hold the durations of these passes (the original, 0.1.7, sends the
/// fit's under all three names). Throughputs of which any is not finite, and quantities without values, are left out.
/// Empty for `simple_old`, which sends only tables. O(values).
[[nodiscard]] std::vector<FastxtendSummary> fastxtend_final_log(const FastxtendValues& values, ProfileMode mode,
                                                                bool drop_first_batch);

}   // namespace drawpoint
