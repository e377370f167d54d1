#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <drawpoint/diagnosis/replay/prediction.hpp>
#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

struct WhatifGrid;   // whatif.hpp

/// A loop that runs under any setting it is given: a live loader that is reconfigured in place, or a replay.
class TuneTarget {
public:
    struct Block {
        double batches_per_s = 0;   ///< batches drawn or batches made per second, whichever is less
        double own_s = 0;           ///< mean seconds of a step without its draw; `tune` does not use it
        /// Cores used by other processes meanwhile; also 0 if not measured. Only the mean over several blocks is
        /// reliable: the kernel counts in ticks of 10 ms, so that the value of one block may be far off, even negative.
        double foreign_cores = 0;
        /// The most memory that the loader needs under this setting, as it expects at the end of the block.
        std::uint64_t peak_bytes = 0;
        /// All steps since the setting was applied: `warm_up` and `steps`, and more where the target had to wait, as a
        /// live loader does for a new pass before it can change the order.
        std::size_t steps = 0;
    };

    virtual ~TuneTarget() = default;
    /// Applies the setting, runs `warm_up` steps that do not count, then `steps` that do, and returns; the setting
    /// stays. Uses the same samples each time, if the data allow it: then two settings differ in nothing else.
    virtual Block run(const LoaderSetting&, std::size_t warm_up, std::size_t steps) = 0;
    /// Does the same, and returns a recording of the counted steps.
    virtual RecordedRun record(const LoaderSetting&, std::size_t warm_up, std::size_t steps) = 0;
    /// The most workers that it can run.
    [[nodiscard]] virtual std::size_t most_workers() const { return loader_limits::most_workers; }
};

/// Number of steps until a change of setting has taken effect: max(from.prefetch_depth, to.prefetch_depth) +
/// min(to.num_workers, 4), since new batches are prefetched while those prefetched under `from` are drawn. If `to` has
/// a memory budget and more workers than `from`, the sum of the two depths takes the place of their maximum, because
/// the new workers wait until old batches have given their memory back.
[[nodiscard]] std::size_t steps_to_settle(const LoaderSetting& from, const LoaderSetting& to) noexcept;

struct TuneOptions {
    /// The setting that the loader has, num_workers ≥ 1. Its batch_size, read_concurrency and memory_budget are kept.
    LoaderSetting start;
    /// 0 … 256; 0: twice the usable cores plus 8, and at least 64 if samples wait longer than they compute. In both
    /// cases the target's `most_workers()` is a limit, too. The start's own number is tried even if it is larger than
    /// either.
    std::size_t most_workers = 0;
    std::size_t most_depth = 16;   ///< 1 … 55; the start's own depth is tried even if it is larger
    /// Besides the start's order, also tries `OrderRule::out_of_order()`; bounded rules are not tried.
    bool may_leave_order = false;
    /// In the race, ≥ 2: the fastest by prediction, the start (unless it is predicted to exceed the memory budget),
    /// and the likeliest others.
    std::size_t most_candidates = 5;
    /// Steps recorded under the start, ≥ 20, after a warm-up of 2 prefetch_depth + num_workers steps.
    std::size_t reference_steps = 80;
    std::size_t block_steps = 10;   ///< counted steps of each candidate in each round, ≥ 1
    /// Limit of all steps, including the recording, warm-ups and repeated rounds, in a clear case: the best predicted
    /// rate differs from the start's measured one by over 3 %, or the leading candidate is measured to be over 4 %
    /// faster than the start. A round that may go beyond the limit is not begun, except for the first. Any value;
    /// larger than `most_steps`, it counts as `most_steps`.
    std::size_t steps = 400;
    std::size_t most_steps = 1000;   ///< the same limit in all other cases; any value
    double within = 0.02;            ///< this much below the best rate is good enough; above 0, below 1
    /// Cores used by other processes, mean over a round. A round with more is discarded and repeated, at most three
    /// times and while the limit of steps allows it; then it counts.
    double most_foreign_cores = 0.25;
    std::uint64_t seed = 1;   ///< of the order within a round
};

/// A candidate in the log.
struct TuneTrial {
    LoaderSetting tried;
    Interval predicted;   ///< batches per second
    /// Batches per second, mean over the blocks that count; 0: there is none. Each candidate runs in the first round,
    /// so that is so only if it exceeded the memory budget in a discarded round, or if the target measured a rate of 0.
    double measured = 0;
    std::size_t blocks = 0;   ///< those that count
    std::string decision;     ///< "chosen", "3.1 % slower than the chosen one", "exceeded the memory budget" …
};

struct Tuning {
    LoaderSetting chosen;
    double batches_per_s = 0;     ///< measured rate of the chosen setting
    double best_seen = 0;         ///< measured rate of the fastest candidate, whether or not it was dropped
    std::size_t steps_used = 0;   ///< all that ran, including the recording, warm-ups and repeated rounds
    /// The chosen setting is within `TuneOptions::within` of every other candidate, with an error probability of 5 %
    /// for the whole race (`Race`). false: it is only the likeliest, by prediction and measurement together.
    bool separated = false;
    /// false: other processes used more than `most_foreign_cores` in over half of the counted rounds. Then the start is
    /// kept unless `separated` (or unless the start was no candidate).
    bool trusted = true;
    double foreign_cores = 0;     ///< cores used by other processes, mean over the counted rounds
    std::string why;              ///< why this setting was chosen, as a sentence
    std::vector<TuneTrial> log;   ///< all candidates, cheapest first
};

/// The settings that `tune` chooses among, for a target that can run `most_workers`. Does not check the options.
/// Include whatif.hpp to call it.
[[nodiscard]] WhatifGrid tune_grid(const RecordedRun&, const TuneOptions&,
                                   std::size_t most_workers = loader_limits::most_workers);

/// Finds the cheapest setting within `within` of the best: records a run, simulates the grid (seconds, as `whatif`),
/// then races the likeliest candidates on the target in interleaved blocks. Cheaper means fewer workers, then less
/// memory. Settings predicted to exceed the memory budget are never run; one that exceeds it when it runs is dropped.
/// Calls the target on the calling thread and blocks until it is done. For a LiveTarget that must not be the loop's
/// thread (`tune_live`). The target is left in the setting that ran last, which need not be the chosen one. Throws
/// std::invalid_argument naming an option out of range, why the run cannot be replayed, or that no setting is expected
/// to keep the budget; std::runtime_error if every candidate exceeded it; and what the target throws.
[[nodiscard]] Tuning tune(TuneTarget&, const TuneOptions&);

}   // namespace drawpoint
