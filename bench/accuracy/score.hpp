#pragma once

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
    std::optional<double> regret;      ///< by how much the best setting of the truth gains more
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
    std::optional<Truth> truth;     ///< absent: not measured, or adversarial
    std::vector<Answer> answers;    ///< ours first
    std::vector<Predicted> gains;   ///< of changes; real ones as measured
    std::vector<Predicted> cells;   ///< of settings that were not recorded: batches a second
    double speed = 0;   ///< of the recorded setting, to what it was in the truth; 0: unknown, or beside a neighbour
    std::vector<Predicted> peaks;     ///< of the same: the loader's memory, bytes
    std::optional<TunedCase> tuned;   ///< where the truth has a grid
    std::string error;                ///< why there is no answer of ours
    bool trusted = true;   ///< the recording, as `diagnose` sees the host; what else it abstains on is its answer
    std::size_t recordings = 1;   ///< made, of which this one counts
    /// How much faster or slower the host was than when the truth was measured, as a share; 0: unknown.
    [[nodiscard]] double drift() const noexcept { return speed > 0 ? std::abs(speed - 1) : 0; }
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

/// Records the case and asks everybody. What our diagnosis throws is kept as `error`.
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
