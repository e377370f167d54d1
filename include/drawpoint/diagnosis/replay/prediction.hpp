#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/replay/replay.hpp>

namespace drawpoint {

/// A median and a 90 % prediction interval. From 19 replications on, its ends are order statistics, valid for any
/// distribution: one more value lies between the i-th smallest and the i-th largest of n with probability (n + 1 - 2
/// i) / (n + 1). With fewer replications they come from Student's t: the median ± t(95 %, n - 1) s √(1 + 1/n),
/// within the possible values. With one, the interval is that value.
struct Interval {
    double median = 0, low = 0, high = 0;
    [[nodiscard]] constexpr Interval times(double factor) const noexcept {
        return {median * factor, low * factor, high * factor};
    }
    bool operator==(const Interval&) const = default;
};

struct PredictOptions {
    std::size_t replications = 30;   ///< each with other samples, cores and model error
    double cores_spread = 0;   ///< standard deviation of the cores that others use; at least the run's own is used
    double core_efficiency = 1, core_efficiency_spread = 0.01;
    /// Standard deviation of the log throughput that no parameter explains; and what is added to it for each unit by
    /// which the log throughput differs from the recorded one, because predictions far from the recording are less
    /// certain. Measured by `bench accuracy`. For a gain, half of the first is used: most of it affects both rates.
    double model_error = 0.022, distance_error = 0.08;
    std::size_t steps = 0;            ///< of a replication; 0: as many as recorded
    std::size_t warm_up_steps = 64;   ///< replayed before those, to fill the pipeline
    /// true: redraws the recorded samples in blocks (a bootstrap); false: takes the recorded samples in their order.
    bool resample = true;
    std::uint64_t seed = 1;
};

struct Prediction {
    Interval batches_per_s;
    Interval draw_share;
    Interval p99_draw_s;
    std::uint64_t peak_bytes = 0;   ///< the largest of all replications
};

/// Predicts the run under `setting` and `change`. Deterministic. Replications run one after the other.
[[nodiscard]] Prediction predict(const RecordedRun&, const LoaderSetting& setting, const Change& change = {},
                                 const PredictOptions& = {});

/// X'/X - 1, where X is samples per second under the recorded setting and X' under the given one. Each replication uses
/// the same samples for both, so that most of the uncertainty cancels.
[[nodiscard]] Interval predict_gain(const RecordedRun&, const LoaderSetting& setting, const Change& change = {},
                                    const PredictOptions& = {});

/// What `predict_gain` divides by: samples per second under the recorded setting, for each replication.
[[nodiscard]] std::vector<double> recorded_rates(const RecordedRun&, const PredictOptions& = {});

/// The same at half the cost, for many changes of one run: `recorded` is what `recorded_rates` returned for the same
/// options with at least as many replications. Throws std::invalid_argument if there are fewer.
[[nodiscard]] Interval predict_gain(const RecordedRun&, const LoaderSetting& setting, const Change& change,
                                    const PredictOptions&, std::span<const double> recorded);

}   // namespace drawpoint
