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
        double own_s = 0;           ///< of a step, without its draw
        /// Used by others meanwhile; only the mean over blocks is reliable, one block may be below 0.
        double foreign_cores = 0;
        std::uint64_t peak_bytes = 0;   ///< of the loader's memory
        std::size_t steps = 0;          ///< taken since the request, including those that do not count
    };

    virtual ~TuneTarget() = default;
    /// Runs `warm_up` steps that do not count, then `steps` that do. Each time on the same samples, if the data allow
    /// it: then two settings differ in nothing else.
    virtual Block run(const LoaderSetting&, std::size_t warm_up, std::size_t steps) = 0;
    /// The same, recorded.
    virtual RecordedRun record(const LoaderSetting&, std::size_t warm_up, std::size_t steps) = 0;
    /// The most workers that it can run.
    [[nodiscard]] virtual std::size_t most_workers() const { return loader_limits::most_workers; }
};

/// Steps until a change of setting has taken effect: until the batches prefetched under `from` are drawn and the window
/// of `to` is full. Under a memory budget these follow one another, because workers wait for room.
[[nodiscard]] std::size_t steps_to_settle(const LoaderSetting& from, const LoaderSetting& to) noexcept;

struct TuneOptions {
    LoaderSetting start;                ///< its batch_size, read_concurrency and memory_budget are kept
    std::size_t most_workers = 0;       ///< 0: twice the cores plus 8, at least 64 if samples mostly wait
    std::size_t most_depth = 16;        ///< 1 … 55
    bool may_leave_order = false;       ///< batches may be drawn in the order in which they are finished
    std::size_t most_candidates = 5;    ///< in the race, ≥ 2
    std::size_t reference_steps = 80;   ///< recorded first, ≥ 20
    std::size_t block_steps = 10;       ///< of each candidate in each round
    std::size_t steps = 400;   ///< in all, if the best is predicted, or measured, to differ from the start by over 5 %
    std::size_t most_steps = 1000;      ///< in all, if they differ by less
    double within = 0.02;               ///< of the best rate: good enough
    double most_foreign_cores = 0.25;   ///< used by others; a round with more is repeated, at most three times
    std::uint64_t seed = 1;             ///< of the order within a round
};

/// A candidate in the log.
struct TuneTrial {
    LoaderSetting tried;
    Interval predicted;    ///< batches per second
    double measured = 0;   ///< mean over its blocks; 0: never run
    std::size_t blocks = 0;
    std::string decision;   ///< "chosen", "3.1 % slower than the chosen one", "never run" …
};

struct Tuning {
    LoaderSetting chosen;
    double batches_per_s = 0;     ///< measured rate of the chosen setting
    double best_seen = 0;         ///< measured rate of the fastest candidate
    std::size_t steps_used = 0;   ///< all that ran, including warm-up and repeated rounds
    bool separated = false;       ///< the choice is certain; false: it is the likeliest
    /// Others used at most `most_foreign_cores` in at least half of the counted rounds. If they did not, and the choice
    /// is not certain, the start is kept.
    bool trusted = true;
    double foreign_cores = 0;     ///< used by others in the counted rounds, mean
    std::string why;              ///< a sentence
    std::vector<TuneTrial> log;   ///< cheapest first
};

/// The settings that `tune` chooses among, for a loader with at most `most_workers`.
[[nodiscard]] WhatifGrid tune_grid(const RecordedRun&, const TuneOptions&,
                                   std::size_t most_workers = loader_limits::most_workers);

/// Finds the cheapest setting within `within` of the best: records a run, simulates the grid, then races the likeliest
/// candidates on the target in interleaved blocks. Cheaper means fewer workers, then less memory. Settings predicted to
/// exceed the memory budget are never run. Throws std::invalid_argument naming an option out of range, or why the run
/// cannot be replayed, and std::runtime_error if every candidate exceeded the budget.
[[nodiscard]] Tuning tune(TuneTarget&, const TuneOptions&);

}   // namespace drawpoint
