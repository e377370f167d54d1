#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/diagnosis/replay/prediction.hpp>

#include "case_run.hpp"
#include "change.hpp"

namespace drawpoint::bench {

/// What one change gained in reality: 0.1 = 10 % more batches a second than in the same round without it.
struct MeasuredGain {
    std::string key;
    Interval gain;   ///< median of the rounds; an interval that holds the true median with 90 %
    std::vector<double> rounds;
};

/// What one setting did in reality.
struct MeasuredCell {
    std::size_t num_workers = 0, prefetch_depth = 0;
    Interval batches_per_s;   ///< its rate relative to the case as it stands, times the rate of that
    std::uint64_t peak_bytes = 0;
};

/// The right answers for a case, measured by changing its real pipeline. Adversarial cases have no truth: there it is
/// right to abstain.
struct Truth {
    std::string name;
    std::uint64_t case_digest = 0;
    std::string date, cpu;
    std::size_t cores = 0, rounds = 0, rounds_refused = 0;
    double foreign_share_median = 0, foreign_share_max = 0;   ///< of the cores, during the rounds that count
    Interval batches_per_s;                                   ///< as the case stands
    std::uint64_t peak_bytes = 0;
    std::vector<MeasuredGain> gains;   ///< the largest first
    std::set<std::string> changes;     ///< keys within `tie` of the largest
    std::set<Verdict> verdicts;        ///< right ones
    std::vector<MeasuredCell> grid;

    [[nodiscard]] const MeasuredGain* find(std::string_view key) const;
};

inline constexpr double least_gain = 0.03, tie = 0.02;

/// By how much a change gains more than another one in the same rounds, of the rounds that both have: each bound is
/// wrong with a probability of 10 %, at whatever round one looks. Without rounds, the difference of their medians.
[[nodiscard]] Interval advantage(const MeasuredGain& one, const MeasuredGain& other);

/// Fills `changes` and `verdicts` from the gains: all of at least `least_gain` that are not shown to gain less than the
/// largest by more than `tie`; if the largest is below `least_gain`, nothing holds the run back ("compute-bound",
/// "balanced"). If the loop's own compute ties with another change, "balanced" is right, too.
void decide(Truth&, const Case&);

/// Whether the right answer is that there is nothing to be cured.
[[nodiscard]] bool is_control(const Truth&);

/// The verdicts' words.
[[nodiscard]] std::vector<std::string> words_of(const std::set<Verdict>&);

/// The median, and a 90 % confidence interval of the true median, bounded by two of the values (the outermost if there
/// are too few for 90 %). `values` must not be empty.
[[nodiscard]] Interval median_interval(std::vector<double> values);

struct MeasureOptions {
    std::size_t rounds = 10, grid_rounds = 3;
    /// In all, of a change whose gain is not known well enough: to tell whether it ties with the largest, or, of a
    /// setting, to 10 % of its rate.
    std::size_t most_rounds = 21;
    double most_foreign = 0.15;     ///< a round in which others took more of the cores is done again
    std::size_t most_repeats = 3;   ///< so often
    std::function<bool()> stopped = [] { return false; };   ///< asked between runs
};

/// Why a case could not be measured.
struct NotMeasured : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Runs the case, each change and its grid in turns; nullopt if stopped. Throws NotMeasured if other processes
/// disturbed more than half of the rounds.
[[nodiscard]] std::optional<Truth> measure_truth(const Case&, Rig&, const MeasureOptions&);

/// What `setting` gains over the case's own, in pairs ABBA; foreign load is not looked at.
[[nodiscard]] Interval measure_gain(const Case&, const LoaderSetting& setting, Rig&, std::size_t pairs);

/// Runs that measuring takes at most, the rounds repeated for others' sake left out.
[[nodiscard]] std::size_t runs_needed(const Case&, const MeasureOptions&);

/// One file a case. Writing is atomic: a file is whole or not there. Reading throws std::runtime_error or
/// std::invalid_argument naming the file.
void write_truth(const std::filesystem::path&, const Truth&);
[[nodiscard]] Truth read_truth(const std::filesystem::path&);

}   // namespace drawpoint::bench
