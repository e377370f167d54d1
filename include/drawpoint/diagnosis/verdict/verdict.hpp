#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/replay/prediction.hpp>
#include <drawpoint/diagnosis/trust/interference.hpp>
#include <drawpoint/diagnosis/verdict/words.hpp>

namespace drawpoint {

/// One change to a run, and the throughput it is predicted to gain.
struct Intervention {
    Lever lever{};
    std::string stage;       ///< the stage's name, where the lever is one stage
    std::string change;      ///< in words: "num_workers 2 -> 4", "decode twice as fast"
    Verdict verdict{};       ///< the cause that this change shows if it gains most
    LoaderSetting setting;   ///< with the change; the recorded one if the change is no setting
    Change what;
    Interval gain;   ///< of throughput: 0.1 = 10 % more

    /// Whether it is a setting that a user can choose, rather than an experiment of thought.
    [[nodiscard]] bool can_be_set() const noexcept { return words_of(lever).is_setting(); }
    /// The lever's key (`LeverWords::key`), followed by the stage's name if the lever is one stage: "num_workers",
    /// "stage:decode". Does not depend on the recorded numbers.
    [[nodiscard]] std::string key() const { return std::string{words_of(lever).key} + stage; }
};

/// Options of a command line: names without the leading dashes, and values.
using OptionValues = std::vector<std::pair<std::string, std::string>>;

struct DiagnosisOptions {
    /// With options that `predict` refuses, `diagnose` abstains and gives that as the reason.
    PredictOptions predict;
    double least_gain = 0.03;   ///< a change whose median gain is not above this is no cause
    /// Causes whose gains are at most this much below the largest are named, too, as `co_verdicts`.
    double tie_points = 0.02;
    /// Samples to replay in all, about 0.3 µs each. If that is too few, replications are fewer and shorter, but not
    /// below 6 of 40 steps each after the warm-up (or what `predict` and the recording have, if that is less): then it
    /// replays more samples than this.
    std::size_t most_samples = 4'000'000;
    /// Defaults of `drawpoint profile`: options with these values are left out of the command in `how_to_refute`.
    OptionValues defaults;
};

struct Diagnosis {
    Verdict verdict = Verdict::undecided;   ///< `undecided` or `interference` where it abstained
    std::vector<Verdict> co_verdicts;       ///< causes that gain as much, within `tie_points`
    std::optional<std::string> abstained;   ///< why there is no verdict; empty: there is one
    std::vector<std::string> evidence;      ///< sentences with numbers
    /// Each change with its predicted gain, the largest gain first; empty if it abstained before predicting.
    std::vector<Intervention> interventions;
    /// The cheapest of the settings that gain most, within `tie_points`; if no setting gains, the part of the loader to
    /// speed up. Empty: none gains, or it abstained.
    std::optional<Intervention> advice;
    std::string how_to_refute;                  ///< what to run, and the gain to expect; empty without advice
    std::size_t more_steps_needed = 0;          ///< to leave "undecided"; 0: more steps would not help
    std::size_t steady_steps = 0;               ///< training steps after the warm-up
    double batches_per_s = 0, draw_share = 0;   ///< measured over the steady steps
    double replayed_batches_per_s = 0;          ///< of the replay of the recorded setting; 0: it was not replayed
    /// Part of a step's time that the replay of the recorded setting lacks: no change to it explains that part. Below
    /// 0: the replay takes longer. Late delivery, which is measured, is not part of it. 0 also if it was not replayed.
    double unexplained = 0;
    std::string assumed_of_scheduler;   ///< `SchedulerTimes::assumed` of the replay
    Blame blame;
    std::vector<BlameRow> blame_rows;   ///< `blame_table` of it
    Trust trust;                        ///< over the steady steps, as is `interference`
    Interference interference;
};

/// Names the cause of a recording's waits: replays it under one change at a time; the change that gains most names the
/// verdict, blame is evidence. Never refuses a ledger: it abstains where it cannot judge. Sorted ledger; deterministic.
/// Takes about a second at the default `most_samples`. Any thread.
[[nodiscard]] Diagnosis diagnose(const Ledger&, const DiagnosisOptions& = {});

}   // namespace drawpoint
