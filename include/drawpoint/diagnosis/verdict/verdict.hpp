#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/trust/interference.hpp>
#include <drawpoint/diagnosis/replay/prediction.hpp>

namespace drawpoint {

/// One change and what it is predicted to gain in throughput (0.1 = 10 %).
struct Intervention {
    /// What is changed, the same in every program: "stage:NAME", "read", "collate", "compute", "transfer" (all at half their
    /// demand), "num_workers", "prefetch_depth", "memory_budget" (x 2), "num_workers/2", "read_concurrency" (x 4), "order"
    /// (out), "variance", "waiting", "cores", "delivery" (none of it).
    std::string key;
    std::string change;   ///< "num_workers 2 -> 4", "decode twice as fast"
    std::string
        verdict;   ///< the cause it would show, if it gains most: diagnosis.md A4's names in spec/cli.md's spelling
    LoaderSetting setting;
    Change what;
    bool can_be_set = false;   ///< a setting a user can choose, rather than an experiment of thought
    Interval gain;
};

/// Options of a command line, by name without dashes.
using OptionValues = std::vector<std::pair<std::string, std::string>>;

struct DiagnosisOptions {
    PredictOptions predict;
    double least_gain = 0.03;   ///< below it a change is no cause, nor one that may as well lose
    double tie_points = 0.02;   ///< closer ones are named together; within half of it, one that can be set comes first
    /// Samples replayed in all: fewer replications and shorter ones where it takes more. About 0.3 µs each.
    std::size_t most_samples = 4'000'000;
    OptionValues defaults;   ///< of `drawpoint profile`: left out of the command that is printed
};

struct Diagnosis {
    std::string verdict;                       ///< a word of spec: "compute-bound", "decode", … "undecided"
    std::vector<std::string> co_verdicts;      ///< within a tie of it
    std::optional<std::string> abstained;      ///< why there is none
    std::vector<std::string> evidence;         ///< sentences with numbers
    std::vector<Intervention> interventions;   ///< by gain; none where it abstained
    std::optional<Intervention> advice;        ///< the cheapest setting that gains most; absent: none gains
    std::string how_to_refute;
    std::size_t more_steps_needed = 0;   ///< of an undecided one
    std::size_t steady_steps = 0;
    double batches_per_s = 0, draw_share = 0;   ///< measured, of the steady steps
    double replayed_batches_per_s = 0;          ///< what the replay of the recorded setting says; 0: not replayed
    Blame blame;
    std::vector<BlameRow> blame_rows;   ///< `blame_table`
    Trust trust;
    Interference interference;
};

/// Decides by replaying the recording under unit changes; blame is the evidence. Sorted ledger. Deterministic. About a
/// second with 4,000,000 samples. Any thread.
[[nodiscard]] Diagnosis diagnose(const Ledger&, const DiagnosisOptions& = {});

}   // namespace drawpoint
