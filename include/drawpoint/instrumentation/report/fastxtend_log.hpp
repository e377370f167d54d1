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

/// What was measured of one step, in seconds; nothing when it was not drawn, failed or never reached its `after_batch`.
[[nodiscard]] std::optional<FastxtendBatch> fastxtend_batch(const StepRow& step, std::span<const SpanRow> spans);

/// A value to log, and its key: "throughput/forward", in 0.0.19 "samples_per_second/train_forward".
struct FastxtendLogValue {
    std::string_view name;   ///< static storage
    double value = 0;
};

/// Decides when a training batch is a log point and computes its samples per second. Over the last `rolling_average` batches
/// these are ratios of means: mean size / (mean draw + mean batch) for step, mean size / mean for the others, and for draw
/// what drawing costs, size / (draw + batch) - size / batch. The report's are means of ratios (`FastxtendReport`), so the two
/// differ. An action that some batches lack (accumulated gradients) is averaged over those that have it; one that none has is
/// left out. `simple_old` logs each batch by itself. Keeps `rolling_average` batches and no more.
class FastxtendLiveLog {
public:
    /// `rolling_average` ≥ 1 (0 counts as 1): batches of a window, and between log points. With `drop_first_batch` counting
    /// starts one batch later.
    FastxtendLiveLog(ProfileMode mode, std::size_t rolling_average, bool drop_first_batch);

    /// Takes the next training batch. The values if it is a log point, else none.
    [[nodiscard]] std::vector<FastxtendLogValue> add(const FastxtendBatch& batch);

private:
    ProfileMode mode_;
    std::size_t window_, waiting_, counted_ = 0;   // waiting_: batches to come before counting starts
    std::deque<FastxtendBatch> last_;
};

/// All values of one quantity of a fit.
struct FastxtendSummary {
    std::string name;   ///< "train/forward_throughput", in samples per second, or "train/forward_duration", in seconds
    std::vector<double> values;
};

/// What the original sends to a logger after a fit beside its tables: "fit/duration", "fit/epoch_duration", then of each pass
/// and action the batches' rates where the report has a number of samples per second, and the durations. Phases of batches are
/// without the batch dropped. `fit/…_duration` are each pass's own (0.1.7 says the whole fit's three times). Nothing for
/// `simple_old`, which sends tables alone. O(values).
[[nodiscard]] std::vector<FastxtendSummary> fastxtend_final_log(const FastxtendValues& values, ProfileMode mode,
                                                                bool drop_first_batch);

}   // namespace drawpoint
