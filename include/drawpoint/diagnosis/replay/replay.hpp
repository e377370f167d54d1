#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

/// What differs from the recording, besides the setting. Factors multiply demands; 1: as recorded.
struct Change {
    std::array<double, max_stages> stages{1, 1, 1, 1, 1, 1, 1, 1};
    double read = 1, collate = 1, transfer = 1, compute = 1;
    bool without_variance = false;   ///< every demand is replaced by its mean
    bool without_waiting = false;    ///< no sample waits off its core (read latency 0)
    bool unlimited_cores = false;    ///< no thread waits for a core
    bool operator==(const Change&) const = default;
};

/// What the loader itself costs, as measured.
struct ReplayCosts {
    std::int64_t wake_ns = 30'000;       ///< until a sleeping thread runs on a halted core
    std::int64_t look_ns = 10'000;       ///< core time of a woken worker that looks for work
    std::int64_t hand_over_ns = 1'000;   ///< core time of the worker that finishes a batch
    bool operator==(const ReplayCosts&) const = default;
};

struct ReplayOptions {
    LoaderSetting setting;
    Change change;
    double cores = 0;                ///< for this process: usable minus those that others use; 0: as recorded
    double core_efficiency = 1;      ///< speed of each core when all compute, against one alone; above 0, at most 1
    std::size_t steps = 0;           ///< to replay; 0: as many as recorded. A recording that is too short is repeated
    std::size_t warm_up_steps = 0;   ///< replayed first, not counted
    /// 0: samples in recorded order; else the seed of a moving-block bootstrap that redraws them.
    std::uint64_t bootstrap_seed = 0;
    bool keep_rows = false;   ///< fills `Replayed::ledger`
    /// The run ends with its last step: nothing is prefetched beyond it. false: it is a part of a longer run.
    bool ends = false;
    ReplayCosts costs;
};

/// A run in virtual time.
struct Replayed {
    double batches_per_s = 0;
    double draw_share = 0;               ///< of the time of the counted steps
    std::int64_t wall_ns = 0;            ///< time of the counted steps
    std::vector<std::int64_t> draw_ns;   ///< of each counted step
    std::uint64_t peak_bytes = 0;        ///< of the loader's memory
    std::uint64_t events = 0;            ///< simulated events
    Ledger ledger;                       ///< of all steps, as a recorder would have written it; only with `keep_rows`
};

/// Whether the loader would accept this setting: its smallest memory plan is within the budget. O(samples).
[[nodiscard]] bool fits_memory(const RecordedRun&, const LoaderSetting&);

/// Runs the recorded demands through the loader's own LoaderMachine in virtual time: workers that claim, cores with a
/// run queue each, reads ahead, a loop that draws and computes. Deterministic. About 0.1 to 0.3 µs per event;
/// allocates some vectors. Any thread. Throws std::invalid_argument naming a setting out of range, or with the text of
/// `unusable`.
[[nodiscard]] Replayed replay(const RecordedRun&, const ReplayOptions&);

}   // namespace drawpoint
