#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/replay/replay.hpp>

namespace drawpoint {

/// A median and the interval that holds 90 % of what is expected. From 19 replications on these are order statistics, of
/// whatever distribution: one more value lies between the i-th and the i-th largest of n with probability
/// (n + 1 - 2 i) / (n + 1). Of fewer, Student's t: the median ± t(95 %, n - 1) s √(1 + 1/n), not beyond what can be. Of
/// one: the value alone.
struct Interval {
    double median = 0, low = 0, high = 0;
    [[nodiscard]] constexpr Interval times(double factor) const noexcept {
        return {median * factor, low * factor, high * factor};
    }
    bool operator==(const Interval&) const = default;
};

struct PredictOptions {
    std::size_t replications = 30;   ///< each with other samples, cores and model error
    double cores_spread = 0;         ///< standard deviation of what others take, in cores; at least the run's own
    double core_efficiency = 1, core_efficiency_spread = 0.01;
    /// Standard deviation of log throughput that no parameter explains, and what is added to it for each unit by which the log
    /// throughput differs from the recorded one: the farther from what was seen, the less is known. As `bench accuracy`
    /// measured them. Of a gain half of the first: most of it is on both sides.
    double model_error = 0.022, distance_error = 0.08;
    std::size_t steps = 0;            ///< a replication's; 0: as recorded
    std::size_t warm_up_steps = 64;   ///< replayed before those, until the pipeline is full
    /// Of other samples of the same kind, by blocks; false: of the very samples recorded, in their order.
    bool resample = true;
    std::uint64_t seed = 1;
};

struct Prediction {
    Interval batches_per_s;
    Interval draw_share;
    Interval p99_draw_s;
    std::uint64_t peak_bytes = 0;   ///< the largest of the replications
};

/// What `setting` and `change` are expected to do. Deterministic. Replications run one after the other.
[[nodiscard]] Prediction predict(const RecordedRun&, const LoaderSetting& setting, const Change& change = {},
                                 const PredictOptions& = {});

/// X'/X - 1, X in samples per second, against the recorded setting, replication by replication on the same samples:
/// most of the uncertainty cancels.
[[nodiscard]] Interval predict_gain(const RecordedRun&, const LoaderSetting& setting, const Change& change = {},
                                    const PredictOptions& = {});

/// What `predict_gain` divides by: samples per second of the recorded setting, of each replication.
[[nodiscard]] std::vector<double> recorded_rates(const RecordedRun&, const PredictOptions& = {});

/// The same for many changes of one run, at half the cost: `recorded` are its `recorded_rates` with the same options, of as
/// many replications or more. Throws std::invalid_argument where they are fewer.
[[nodiscard]] Interval predict_gain(const RecordedRun&, const LoaderSetting& setting, const Change& change,
                                    const PredictOptions&, std::span<const double> recorded);

}   // namespace drawpoint
