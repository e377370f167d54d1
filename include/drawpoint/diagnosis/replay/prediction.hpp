#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/replay/replay.hpp>

namespace drawpoint {

/// A median and a 90 % prediction interval: one more value would lie in it with a probability of 90 %. With n ≥ 19
/// replications, `low` and `high` have the ranks 0.05 (n + 1) and 0.95 (n + 1) among the sorted values (of 19 the
/// smallest and the largest), interpolated where these are no whole numbers (of 30: 1.55 and 29.45); this holds for any
/// distribution. With fewer, they are the median ± t(95 %, n - 1) s √(1 + 1/n) by Student's t, but no rate or time
/// is below 0, no share outside 0 … 1 and no gain below -1. With one, the interval is that value.
struct Interval {
    double median = 0, low = 0, high = 0;
    /// `factor` ≥ 0: `low` and `high` are not exchanged.
    [[nodiscard]] constexpr Interval times(double factor) const noexcept {
        return {median * factor, low * factor, high * factor};
    }
    bool operator==(const Interval&) const = default;
};

struct PredictOptions {
    /// Replays of the run, ≥ 1. Each draws its own samples, cores and core efficiency.
    std::size_t replications = 30;
    /// Standard deviation of the cores that others use: the larger of this and `RecordedRun::foreign_cores_spread`.
    double cores_spread = 0;
    /// Mean and standard deviation of the speed of each core when all compute, relative to one alone. What is drawn is
    /// clamped to 0.1 … 1.
    double core_efficiency = 1, core_efficiency_spread = 0.01;
    /// Standard deviation of the logarithm that no parameter explains: of a rate, and of a gain, where most of it
    /// affects both rates (and all of it if nothing changes). `distance_error` is added for each unit by which the log
    /// rate differs from the recorded one, because predictions far from the recording are less certain. All are
    /// measured by `bench accuracy`, and widen intervals without moving the median.
    double model_error = 0.022, gain_error = 0.014, distance_error = 0.08;
    std::size_t steps = 0;            ///< of a replication; 0: as many as recorded
    std::size_t warm_up_steps = 64;   ///< replayed before those, to fill the pipeline
    /// true: redraws the recorded samples in blocks (a bootstrap); false: takes the recorded samples in their order.
    bool resample = true;
    std::uint64_t seed = 1;
};

struct Prediction {
    Interval batches_per_s;
    Interval draw_share;            ///< part of the steps' time that is draws
    Interval p99_draw_s;            ///< 99th percentile of the draws' lengths, in seconds
    std::uint64_t peak_bytes = 0;   ///< of the loader's memory, the largest of all replications
};

// All of these are deterministic and run their replications one after the other on the calling thread, which may be
// any. A replication takes as long as a `replay`. They throw std::invalid_argument as `replay` does, and for 0
// replications.

/// Predicts the run under `setting` and `change`.
[[nodiscard]] Prediction predict(const RecordedRun&, const LoaderSetting& setting, const Change& change = {},
                                 const PredictOptions& = {});

/// X'/X - 1, where X is samples per second under the recorded setting and X' under `setting` with `change`. Each
/// replication uses the same samples and cores for both, so that most of the uncertainty cancels. Two replays each.
[[nodiscard]] Interval predict_gain(const RecordedRun&, const LoaderSetting& setting, const Change& change = {},
                                    const PredictOptions& = {});

/// What `predict_gain` divides by: samples per second under the recorded setting, for each replication.
[[nodiscard]] std::vector<double> recorded_rates(const RecordedRun&, const PredictOptions& = {});

/// The same at half the cost, for many changes of one run: `recorded` is what `recorded_rates` returned for options
/// that differ at most in having more replications. Also throws std::invalid_argument if it has fewer values than
/// replications.
[[nodiscard]] Interval predict_gain(const RecordedRun&, const LoaderSetting& setting, const Change& change,
                                    const PredictOptions&, std::span<const double> recorded);

}   // namespace drawpoint
