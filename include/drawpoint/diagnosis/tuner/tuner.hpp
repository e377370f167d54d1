#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <drawpoint/diagnosis/replay/prediction.hpp>
#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

struct WhatifGrid;   // whatif.hpp

/// A loop that runs on under whatever setting it is given: a live loader that is reconfigured in place, or a replay.
class TuneTarget {
public:
    struct Block {
        double batches_per_s = 0;       ///< that last: of what was drawn or of what was made, whichever is less
        double own_s = 0;               ///< of a step, outside its draw
        double foreign_cores = 0;       ///< that others took meanwhile; a mean over blocks: of one it may be below 0
        std::uint64_t peak_bytes = 0;   ///< of the loader's memory
        std::size_t steps = 0;          ///< that it took from when it was asked for
    };

    virtual ~TuneTarget() = default;
    /// Runs `warm_up` steps that do not count, then `steps` that do. The same samples each time where the data allow it:
    /// then what is left between two settings is their difference.
    virtual Block run(const LoaderSetting&, std::size_t warm_up, std::size_t steps) = 0;
    /// The same, recorded.
    virtual RecordedRun record(const LoaderSetting&, std::size_t warm_up, std::size_t steps) = 0;
    /// That it can run.
    [[nodiscard]] virtual std::size_t most_workers() const { return loader_limits::most_workers; }
};

/// Steps that a loader takes from one setting to the other: until what was prefetched under `from` is drawn and the window
/// of `to` is full; under a memory budget, where workers wait for room, one after the other.
[[nodiscard]] std::size_t steps_to_settle(const LoaderSetting& from, const LoaderSetting& to) noexcept;

struct TuneOptions {
    LoaderSetting start;                ///< batch_size, read_concurrency and memory_budget stay as they are here
    std::size_t most_workers = 0;       ///< 0: twice the cores and 8 more, or 64 where samples mostly wait
    std::size_t most_depth = 16;        ///< 1 … 55
    bool may_leave_order = false;       ///< batches may be drawn as they are finished
    std::size_t most_candidates = 5;    ///< that are raced, ≥ 2
    std::size_t reference_steps = 80;   ///< recorded first
    std::size_t block_steps = 10;       ///< of a candidate in a round
    std::size_t steps = 400;   ///< in all, where the best is expected, or seen, to differ from the start by over 5 %
    std::size_t most_steps = 1000;      ///< in all, where they differ by less
    double within = 0.02;               ///< of the best rate: good enough
    double most_foreign_cores = 0.25;   ///< a round with more is run again, three times at most
    std::uint64_t seed = 1;             ///< of the order in a round
};

/// A line of the log.
struct TuneTrial {
    LoaderSetting tried;
    Interval predicted;    ///< batches a second
    double measured = 0;   ///< mean over its blocks; 0: never run
    std::size_t blocks = 0;
    std::string decision;   ///< "chosen", "3.1 % slower than the chosen one", "never run" …
};

struct Tuning {
    LoaderSetting chosen;
    double batches_per_s = 0;     ///< of the chosen one, measured
    double best_seen = 0;         ///< of the fastest, measured
    std::size_t steps_used = 0;   ///< all that ran, warm-up and repeated rounds too
    bool separated = false;       ///< the choice is sure; false: the likeliest by measurement
    /// Others took `most_foreign_cores` or less in most of the rounds that count. Where they did not and the choice is not
    /// sure, it is the start.
    bool trusted = true;
    double foreign_cores = 0;     ///< that others took in the rounds that count
    std::string why;              ///< a sentence
    std::vector<TuneTrial> log;   ///< the cheapest first
};

/// The settings that `tune` chooses among, of a loader with at most `most_workers`.
[[nodiscard]] WhatifGrid tune_grid(const RecordedRun&, const TuneOptions&,
                                   std::size_t most_workers = loader_limits::most_workers);

/// Finds the cheapest setting within 2 % of the best: records, simulates the grid, then races the likeliest candidates on
/// the target in interleaved blocks. Cheaper: fewer workers, then less memory. Settings whose memory exceeds the budget
/// are never run. Throws std::invalid_argument naming an option out of range, or why the run cannot be replayed.
[[nodiscard]] Tuning tune(TuneTarget&, const TuneOptions&);

}   // namespace drawpoint
