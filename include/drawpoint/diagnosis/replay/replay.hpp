#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

/// What differs from the recording, besides the setting. Factors multiply demands, computing and waiting alike (but not
/// the core time of falling asleep, `RecordedRun::sleep_cpu_ns`); 1: as recorded; 0 … 10^6.
struct Change {
    /// By stage, in the order of `RecordedRun::stages`. If nothing was read ahead, the first one also scales the time
    /// that reads take on a shared bandwidth (`RecordedRun::line_ns_per_byte`).
    std::array<double, max_stages> stages{1, 1, 1, 1, 1, 1, 1, 1};
    /// `read` scales `SampleDemand::read` and, if there were reads ahead, their time on a shared bandwidth; it has no
    /// effect if the first stage includes the read. `collate` scales `BatchDemand::collate`, `transfer` its `transfer`
    /// and `send_cpu_ns`; `compute` scales `StepDemand::compute`, `device` and `after`, but not `pause_ns`.
    double read = 1, collate = 1, transfer = 1, compute = 1;
    double sampler = 1;   ///< scales what a pass begins with: `RecordedRun::order` and `worker_gap_ns`
    /// Scales how far each demand lies from its mean, except `pause_ns`; 0 … 1; 0: every demand is its mean.
    double variance = 1;
    /// Scales how long samples wait off their core: for reads, in stages, on a shared bandwidth. The loop, collating
    /// and transfers are as recorded. 0: then no core time of falling asleep is left either.
    double waiting = 1;
    bool unlimited_cores = false;   ///< no thread waits for a core
    // With a device:
    std::size_t device_buffers = 0;   ///< batches that it holds, 1 … 64; 0: as many as recorded
    bool pinned = false;              ///< the loop does not wait for copies
    bool no_sync = false;             ///< the loop does not wait for the device in a step
    bool operator==(const Change&) const = default;
};

/// What the loader itself takes, besides the recorded costs (`RecordedRun::overhead_ns` and `sleep_cpu_ns`): constants,
/// not taken from the recording.
struct ReplayCosts {
    /// Until a sleeping thread runs on a halted core, if the recording does not show it.
    std::int64_t wake_ns = 30'000;
    std::int64_t look_ns = 10'000;       ///< core time of a woken worker that looks for work
    std::int64_t hand_over_ns = 1'000;   ///< core time of the worker that finishes a batch
    bool operator==(const ReplayCosts&) const = default;
};

struct ReplayOptions {
    LoaderSetting setting;   ///< not the recorded one by default: that is `RecordedRun::setting`
    Change change;
    /// Cores that this process has, may be fractional; 0: `RecordedRun::cores` - `foreign_cores`. At least 0.01.
    double cores = 0;
    double core_efficiency = 1;      ///< speed of each core when all compute, relative to one alone; above 0, at most 1
    std::size_t steps = 0;           ///< to replay; 0: as many as recorded. A recording that is too short is repeated
    std::size_t warm_up_steps = 0;   ///< replayed before `steps`, not counted
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
    double draw_share = 0;               ///< part of the counted steps' time that is draws
    std::int64_t wall_ns = 0;            ///< time of the counted steps
    std::vector<std::int64_t> draw_ns;   ///< of each counted step
    std::uint64_t peak_bytes = 0;        ///< the most memory that the loader held
    std::uint64_t events = 0;            ///< number of simulated events
    Ledger ledger;                       ///< of all steps, as a recorder would have written it; only with `keep_rows`
};

/// Whether the loader would accept this setting's memory_budget: whether the smallest depth and reads to which it could
/// reduce the setting fit, by the recorded sizes. True without a budget, and for the recorded setting. Checks nothing
/// else, not even ranges. O(samples).
[[nodiscard]] bool fits_memory(const RecordedRun&, const LoaderSetting&);

/// Runs the recorded demands through the loader's own LoaderMachine in virtual time: workers that claim, cores with a
/// run queue each, reads ahead, a loop that draws and computes. Depth and reads are reduced to the memory budget as the
/// loader does; where even that does not fit (`fits_memory`), the replay runs and exceeds the budget. Deterministic.
/// About 0.1 to 0.3 µs per event; a sample has at most two for each read or stage (waiting, computing), a step a few.
/// Memory: a copy of the demands, and 4 bytes per replayed sample. Any thread. Throws std::invalid_argument naming a
/// number of the setting (`loader_limits`), the change or core_efficiency that is out of range, a demand that exceeds
/// 36 minutes once scaled, a replay of more than 2^29 samples or 73 years, or with the text of `unusable`.
[[nodiscard]] Replayed replay(const RecordedRun&, const ReplayOptions&);

}   // namespace drawpoint
