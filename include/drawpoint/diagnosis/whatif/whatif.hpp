#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <drawpoint/diagnosis/trust/interference.hpp>
#include <drawpoint/diagnosis/replay/prediction.hpp>

namespace drawpoint {

/// The settings to predict: all combinations of these, in any order; doubles count once. An empty list stands for the
/// recorded value. Ranges: `loader_limits`. Of a PyTorch loader `prefetch_depth` stands for prefetch_factor, and
/// settings that prefetch more than `loader_limits::most_pytorch_depth` in all are left out.
struct WhatifGrid {
    std::vector<std::size_t> num_workers, prefetch_depth, batch_size;
    std::vector<OrderRule> order;
    Change change;   ///< applied to all of them: stages made faster, a variance removed …
};

struct WhatifOptions {
    PredictOptions predict{.replications = 20};
    std::size_t most_rows = 4096;   ///< most settings of a grid; a larger one is refused
    /// Samples to replay in all, about 0.3 µs each. A grid that needs more gets shorter replications, but none shorter
    /// than 50 steps after the warm-up: then it takes longer.
    std::size_t most_samples = 4'000'000;
};

/// One setting and its prediction.
struct WhatifRow {
    LoaderSetting setting;
    Prediction prediction;
    double samples_per_s = 0;   ///< median; comparable between batch sizes
    bool recorded = false;      ///< the recorded setting, with unchanged demands
    bool on_frontier = false;   ///< no other row is as good in speed, workers and memory, and better in one of them
};

struct Whatif {
    LoaderSetting recorded;
    double recorded_batches_per_s = 0, recorded_draw_share = 0;   ///< measured
    Prediction as_recorded;                                       ///< what the replay predicts for the recorded setting
    /// By batch size, order, workers, depth, without those that the memory budget rules out; at least one. The rates of
    /// the replay are divided by the factor by which it is off for the recorded setting.
    std::vector<WhatifRow> rows;
    std::size_t best = 0;   ///< index into `rows`: the most samples per second
    /// Index into `rows`: the smallest within 2 % of it: fewest workers, then least memory.
    std::size_t recommended = 0;
    Trust trust;   ///< in the recording; `whatif` leaves it as it is by default, for the caller to set
    /// Among several workers or depths of the grid, the recommended row has the largest: more may be better.
    bool on_edge = false;
};

/// Predicts every setting of the grid from one recorded run, with the load of other processes and the shared bandwidth
/// of reads that the run holds (`steady_run`). Deterministic; takes about a second for 4,000,000 samples. Any thread.
/// Throws std::invalid_argument that says why the run cannot be replayed, which number is out of range, that there are
/// too many settings, or that none fits the memory budget.
[[nodiscard]] Whatif whatif(const RecordedRun&, const WhatifGrid&, const WhatifOptions& = {});

/// The recorded run of a sorted ledger as `whatif` and `diagnose` use it: its steady part, with the measured load of
/// other processes and the bandwidth that reads share, if they do. `unusable` says why it cannot be replayed. Takes as
/// long as `blame`, and for replays half a second as a rule, four at most. Any thread.
[[nodiscard]] RecordedRun steady_run(const Ledger&);

}   // namespace drawpoint
