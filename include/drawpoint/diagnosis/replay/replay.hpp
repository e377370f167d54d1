#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

/// What is different from the recording, beside the setting. Factors multiply demands; 1: as recorded.
struct Change {
    std::array<double, max_stages> stages{1, 1, 1, 1, 1, 1, 1, 1};
    double read = 1, collate = 1, transfer = 1, compute = 1;
    bool without_variance = false;   ///< every demand is its mean
    bool without_waiting = false;    ///< no sample waits off its core (read latency 0)
    bool unlimited_cores = false;    ///< nobody waits for a core
    bool operator==(const Change&) const = default;
};

/// What the loader itself takes, on the machines it was measured on.
struct ReplayCosts {
    std::int64_t wake_ns = 30'000;       ///< until a sleeping thread runs on a halted core
    std::int64_t look_ns = 10'000;       ///< of a core: a woken worker looks for work
    std::int64_t hand_over_ns = 1'000;   ///< of the worker that finishes a batch
    bool operator==(const ReplayCosts&) const = default;
};

struct ReplayOptions {
    LoaderSetting setting;
    Change change;
    double cores = 0;             ///< for this process: usable minus what others take; 0: as recorded
    double core_efficiency = 1;   ///< of each core when all compute at once, 0.5 … 1
    std::size_t steps = 0;   ///< to replay; 0: as many as recorded. The recording is repeated where it is too short
    std::size_t warm_up_steps = 0;   ///< replayed first, not counted
    /// 0: samples in recorded order; else they are drawn by a moving-block bootstrap with this seed.
    std::uint64_t bootstrap_seed = 0;
    bool keep_rows = false;   ///< `Replayed::ledger` too
    /// The run ends with its last step: nothing is prefetched beyond it. Else it is a part of a longer one.
    bool ends = false;
    ReplayCosts costs;
};

/// A run in virtual time.
struct Replayed {
    double batches_per_s = 0;
    double draw_share = 0;               ///< of the time of the counted steps
    std::int64_t wall_ns = 0;            ///< of those
    std::vector<std::int64_t> draw_ns;   ///< of each
    std::uint64_t peak_bytes = 0;        ///< of the loader's memory
    std::uint64_t events = 0;            ///< simulated
    Ledger ledger;                       ///< of all steps, as a recorder would have written it; only with `keep_rows`
};

/// Whether the loader would take this setting: its smallest plan is within its memory budget. O(samples).
[[nodiscard]] bool fits_memory(const RecordedRun&, const LoaderSetting&);

/// Runs the recorded demands through the loader's own LoaderPolicy in virtual time: workers that claim, cores with a queue
/// each, reads ahead, a loop that draws and computes. Deterministic. About 0.1 to 0.3 µs an event; allocates some vectors. Any thread. Throws std::invalid_argument naming a setting out of range, or `unusable`.
[[nodiscard]] Replayed replay(const RecordedRun&, const ReplayOptions&);

}   // namespace drawpoint
