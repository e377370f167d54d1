#include <drawpoint/diagnosis/replay/prediction.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace drawpoint {
namespace {

constexpr double least_cores = 0.05;

/// The random values of one replication, the same for every setting and change (common random numbers).
struct Draw {
    std::uint64_t seed = 0;
    double cores = 0, efficiency = 1;
};

std::vector<Draw> draws_of(const RecordedRun& run, const PredictOptions& options) {
    if (options.replications == 0)
        throw std::invalid_argument{"predict: replications must be at least 1, got 0"};
    std::vector<Draw> draws(options.replications);
    std::mt19937_64 random{options.seed};
    std::normal_distribution<double> normal;
    const double spread = std::max(options.cores_spread, run.foreign_cores_spread);
    for (Draw& draw : draws) {
        draw.seed = random() | 1;   // 0 would be the recorded order
        draw.cores = std::max(run.cores - run.foreign_cores + spread * normal(random), least_cores);
        draw.cores = std::min(draw.cores, std::max(run.cores, least_cores));
        draw.efficiency =
            std::clamp(options.core_efficiency + options.core_efficiency_spread * normal(random), 0.1, 1.0);
    }
    return draws;
}

Replayed replay_one(const RecordedRun& run, const LoaderSetting& setting, const Change& change,
                    const PredictOptions& options, const Draw& draw) {
    return replay(run, {.setting = setting,
                        .change = change,
                        .cores = draw.cores,
                        .core_efficiency = draw.efficiency,
                        .steps = options.steps,
                        .warm_up_steps = options.warm_up_steps,
                        .bootstrap_seed = options.resample ? draw.seed : 0});
}

/// The value below which a share `at` of further values is expected.
double quantile(const std::vector<double>& sorted, double at) {
    const auto n = static_cast<double>(sorted.size());
    const double place = std::clamp(at * (n + 1) - 1, 0.0, n - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

/// `least` and `most`: the range of possible values.
Interval interval_of(std::vector<double> values, double least, double most = std::numeric_limits<double>::infinity()) {
    // 95 % quantiles of Student's t with 1, 2, … degrees of freedom.
    constexpr std::array t{6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833,
                           1.812, 1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740};
    std::ranges::sort(values);
    const double median = quantile(values, 0.5);
    const std::size_t n = values.size();
    if (n > t.size() + 1)   // a share of 1 / (n + 1) is expected below the smallest value
        return {median, quantile(values, 0.05), quantile(values, 0.95)};
    if (values.front() == values.back())
        return {median, median, median};
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(n);
    double squares = 0;
    for (const double value : values)
        squares += (value - mean) * (value - mean);
    const double half = t[n - 2] * std::sqrt(squares / static_cast<double>(n - 1) * (1 + 1 / static_cast<double>(n)));
    return {median, std::max(median - half, least), std::min(median + half, most)};
}

/// The interval of a rate relative to the recorded one, of which `ratios` are replications. The model's error is
/// independent of what they show, so the logarithms of both errors add as squares. One replication shows neither.
Interval with_error(std::vector<double> ratios, double error, double distance_error) {
    constexpr double of_normal = 1.6449;   // its 95 % quantile
    const bool is_one = ratios.size() == 1;
    const Interval replayed = interval_of(std::move(ratios), 0);
    if (is_one || !(replayed.median > 0))
        return replayed;
    const double model = of_normal * (error + distance_error * std::abs(std::log(replayed.median)));
    const auto factor = [&](double bound) { return std::exp(std::hypot(std::log(bound / replayed.median), model)); };
    return {replayed.median, replayed.median / factor(replayed.low), replayed.median * factor(replayed.high)};
}

/// In samples, because batch sizes may differ.
double samples_per_s(const RecordedRun& run, const LoaderSetting& setting, const Change& change,
                     const PredictOptions& options, const Draw& draw) {
    return replay_one(run, setting, change, options, draw).batches_per_s * static_cast<double>(setting.batch_size);
}

double p99_s(std::vector<std::int64_t> draw_ns) {
    const std::size_t at = (draw_ns.size() - 1) * 99 / 100;
    std::ranges::nth_element(draw_ns, draw_ns.begin() + static_cast<std::ptrdiff_t>(at));
    return static_cast<double>(draw_ns[at]) * 1e-9;
}

}   // namespace

Prediction predict(const RecordedRun& run, const LoaderSetting& setting, const Change& change,
                   const PredictOptions& options) {
    Prediction prediction;
    std::vector<double> ratios, shares, tails;
    const double as_recorded =   // for this batch size
        run.batches_per_s > 0
            ? run.batches_per_s * static_cast<double>(run.setting.batch_size) / static_cast<double>(setting.batch_size)
            : 1;
    const double distance_error = run.batches_per_s > 0 ? options.distance_error : 0;
    for (const Draw& draw : draws_of(run, options)) {
        const Replayed replayed = replay_one(run, setting, change, options, draw);
        ratios.push_back(replayed.batches_per_s / as_recorded);
        shares.push_back(replayed.draw_share);
        tails.push_back(p99_s(replayed.draw_ns));
        prediction.peak_bytes = std::max(prediction.peak_bytes, replayed.peak_bytes);
    }
    prediction.batches_per_s = with_error(std::move(ratios), options.model_error, distance_error).times(as_recorded);
    prediction.draw_share = interval_of(std::move(shares), 0, 1);
    prediction.p99_draw_s = interval_of(std::move(tails), 0);
    return prediction;
}

std::vector<double> recorded_rates(const RecordedRun& run, const PredictOptions& options) {
    std::vector<double> rates;
    for (const Draw& draw : draws_of(run, options))
        rates.push_back(samples_per_s(run, run.setting, {}, options, draw));
    return rates;
}

Interval predict_gain(const RecordedRun& run, const LoaderSetting& setting, const Change& change,
                      const PredictOptions& options, std::span<const double> recorded) {
    const std::vector<Draw> draws = draws_of(run, options);
    if (recorded.size() < draws.size())
        throw std::invalid_argument{"predict_gain: " + std::to_string(recorded.size()) + " recorded rates for " +
                                    std::to_string(draws.size()) + " replications"};
    std::vector<double> ratios;
    for (std::size_t i = 0; i < draws.size(); ++i)
        ratios.push_back(samples_per_s(run, setting, change, options, draws[i]) / recorded[i]);
    const bool changes = !(setting == run.setting && change == Change{});
    const auto [median, low, high] =
        with_error(std::move(ratios), changes ? options.gain_error : 0, options.distance_error);
    return {median - 1, low - 1, high - 1};
}

Interval predict_gain(const RecordedRun& run, const LoaderSetting& setting, const Change& change,
                      const PredictOptions& options) {
    return predict_gain(run, setting, change, options, recorded_rates(run, options));
}

}   // namespace drawpoint
