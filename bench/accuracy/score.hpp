#pragma once

#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/report/json.hpp>

#include "../spread.hpp"
#include "truth.hpp"
#include "tuned_case.hpp"

namespace drawpoint::bench {

/// What one rule, ours or another, said of one case, and what came of it.
struct Answer {
    std::string rule;
    Verdict verdict = Verdict::undecided;
    std::optional<std::string> abstained;   ///< why
    std::optional<LoaderSetting> advice;
    std::optional<double> real_gain;   ///< of the advice, in reality
    std::optional<double> regret;   ///< by how much the best setting of the truth gains more; of others' may be below 0
    /// Whether it said that it cannot say.
    [[nodiscard]] bool declined() const noexcept;
    /// Whether the verdict says that there is something to be cured.
    [[nodiscard]] bool names_a_cause() const noexcept;
};

/// A figure that was predicted, and what it really is.
struct Predicted {
    std::string what;
    Interval predicted;
    double real = 0;
    [[nodiscard]] bool covered() const noexcept { return predicted.low <= real && real <= predicted.high; }
    /// Of the real one.
    [[nodiscard]] double error() const noexcept { return std::abs(predicted.median - real) / real; }
};

/// One case, recorded anew and judged by everybody.
struct Scored {
    Case of;
    std::optional<Truth> truth;              ///< absent: not measured, or adversarial
    std::vector<Answer> answers;             ///< ours first
    std::vector<Predicted> gains;            ///< of changes, if there is a verdict; real ones as measured
    std::vector<Predicted> cells;            ///< of settings that were not recorded, verdict or not: batches a second
    std::vector<Predicted> one_line_cells;   ///< the same settings, by the rule of one line
    /// By how much the largest gain is larger than that of the next other word, in points, as we predicted them.
    std::optional<double> gap;
    double speed = 0;   ///< of the recorded setting, to what it was in the truth; 0: unknown, or beside a neighbour
    std::vector<Predicted> peaks;     ///< of the same: the loader's memory, bytes
    std::optional<TunedCase> tuned;   ///< where the truth has a grid
    bool tuning_failed = false;
    std::string error;   ///< why there is no answer of ours
    /// Whether an answer is one of the truth's words, and not withheld. Other rules have one word for reading, which
    /// stands for both of ours.
    [[nodiscard]] bool is_right(const Answer&) const;
};

struct ScoreOptions {
    /// Cores that another process takes while the case is recorded, 0 … 1. If not 0, nothing is tuned, and the run
    /// without that process is predicted.
    double neighbour = 0;
    std::size_t passes = 4;   ///< over the case's samples, recorded; of adversarial cases always 1
    /// Where recordings are kept; those that are there already are judged as they are. Empty: none are kept.
    std::filesystem::path recordings;
    bool tunes = true;   ///< also runs the tuner where the truth has a grid
};

/// Records the case into the folder of recordings, unless that recording is there.
void record_case(const Case&, Rig&, const ScoreOptions&);

/// Records the case, on other samples than the truth's, and asks everybody. What our diagnosis throws is kept as
/// `error`.
[[nodiscard]] Scored score_case(const Case&, const std::optional<Truth>&, Rig&, const ScoreOptions& = {});

/// What one rule comes to, over all cases.
struct RuleScore {
    std::string rule;
    Share right, false_alarms, abstained_correctly, abstained_wrongly;
    std::vector<double> regrets;
};

/// All of it. Verdicts are counted over cases with a truth: one that abstains there is not right.
struct Score {
    std::size_t cases = 0, not_measured = 0;
    std::vector<RuleScore> rules;                                           ///< ours first
    std::map<std::pair<std::string, std::string>, std::size_t> confusion;   ///< (true, said) of ours
    std::vector<double> whatif_errors, gain_errors;                         ///< |predicted - real| / real; in gain
    /// 95 % interval of the mean of `whatif_errors`, by drawing cases.
    std::optional<std::pair<double, double>> whatif_error_mean;
    std::vector<double> one_line_errors;   ///< as whatif_errors, of the rule of one line
    std::array<Share, 3> right_by_gap;     ///< ours; the gap is below 5 points, below 15, larger
    std::size_t right_words = 0;           ///< of all truths together: more than one a case where they tie
    std::vector<double>
        ratio_errors;   ///< of the rate to the recorded setting's: what a host's speed that day is not in
    Share intervals, gain_intervals;     ///< that contain the truth
    std::vector<double> peak_errors;     ///< |predicted - real| / real
    std::vector<double> tuner_regrets;   ///< of the best setting's rate
    std::vector<double> tuner_steps;
    Share tuner_in_time;   ///< within 400 steps where the effect is above 5 %, else 1,000
    Share budgets_kept;    ///< by the tuner, of those there are
    std::vector<Scored> scored;
};

[[nodiscard]] Score score_of(std::vector<Scored>);

[[nodiscard]] std::string line_of(const Scored&);   ///< one, for the terminal
[[nodiscard]] std::string table_of(const Score&);
[[nodiscard]] std::string json_of(const Score&, const JsonHead&);   ///< `drawpoint.accuracy/1`

}   // namespace drawpoint::bench
