#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <drawpoint/diagnosis/trust/interference.hpp>
#include <drawpoint/diagnosis/replay/prediction.hpp>

namespace drawpoint {

/// Which settings to predict: all combinations. An empty list: the recorded number alone.
struct WhatifGrid {
    std::vector<std::size_t> num_workers, prefetch_depth, batch_size;
    std::vector<OrderRule> order;
    Change change;   ///< of all settings: stages made faster, a variance removed …
};

struct WhatifOptions {
    PredictOptions predict{.replications = 20};
    std::size_t most_rows = 4096;   ///< more are refused
    /// Samples replayed in all: shorter replications where the grid takes more. About 0.3 µs each.
    std::size_t most_samples = 4'000'000;
};

/// One setting and what is expected of it.
struct WhatifRow {
    LoaderSetting setting;
    Prediction prediction;
    double samples_per_s = 0;   ///< median; what settings of different batch sizes are compared by
    bool recorded = false;      ///< the setting of the recording, with its demands unchanged
    bool on_frontier = false;   ///< none is as fast with as few workers and as little memory, and better in one of them
};

struct Whatif {
    LoaderSetting recorded;
    double recorded_batches_per_s = 0, recorded_draw_share = 0;   ///< measured
    Prediction as_recorded;                                       ///< of the recorded setting, as the replay says
    /// By batch size, order, workers, depth; without those that the memory budget does not allow. Rates as the replay's, less
    /// what that is off for the recorded setting.
    std::vector<WhatifRow> rows;
    std::size_t best = 0;          ///< of `rows`: the most samples a second
    std::size_t recommended = 0;   ///< of `rows`: the smallest within 2 % of it: fewest workers, then least memory
    Trust trust;                   ///< of the recording; the caller sets it
    bool on_edge = false;          ///< the recommended one is the largest of a list with several: more may be better
};

/// Predicts every setting of the grid from one recorded run. Deterministic; about a second with 4,000,000 samples. Any
/// thread. Throws std::invalid_argument saying why the run cannot be replayed, naming a number out of range, that there are
/// too many settings, or that none fits the memory budget.
[[nodiscard]] Whatif whatif(const RecordedRun&, const WhatifGrid&, const WhatifOptions& = {});

/// The recorded run of a ledger as `whatif` and `diagnose` take it: its steady part, with the load of others that was measured.
[[nodiscard]] RecordedRun steady_run(const Ledger&);

}   // namespace drawpoint
