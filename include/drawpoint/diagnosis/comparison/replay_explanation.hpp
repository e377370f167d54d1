#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Something that a second run asks for more or less of than a first one, and what the replay of the first one says of
/// that change alone.
struct DemandChange {
    /// A stage, "read", "collate", "transfer", "compute" (the loop's), "sampler", "settings" (workers, depth and all
    /// others), or "all of these".
    std::string name;
    double a_ns = 0, b_ns = 0;   ///< mean demand of a sample, a batch, a step or a pass's order; of settings and all: 0
    double a_step_ns = 0;        ///< by how much a training step then takes longer than in the replay of the first run
    bool is_replayed = true;     ///< false: the first run's demand cannot be scaled so far, so `a_step_ns` is 0
};

struct ReplayExplanation {
    std::vector<DemandChange> changes;   ///< largest effect first; of several, "all of these" last
    double measured_ns = 0;              ///< by how much a steady training step of the second run takes longer
    std::string missing;                 ///< why there is no explanation; empty: there is one
};

/// Explains by replays why the steps of two runs differ: which demands changed by 2 % or more, or that the settings
/// did, and what each of that does to the first run. Never throws for what a ledger holds; `missing` says what is
/// missing. Sorted ledgers. A second or less. Any thread.
[[nodiscard]] ReplayExplanation explain_by_replay(const Ledger& a, const Ledger& b);

[[nodiscard]] std::string to_text(const ReplayExplanation&);
/// The member `replay` of a document of schema `drawpoint.run-comparison/1`, which docs/formats.md describes.
[[nodiscard]] nlohmann::ordered_json to_json(const ReplayExplanation&);

}   // namespace drawpoint
