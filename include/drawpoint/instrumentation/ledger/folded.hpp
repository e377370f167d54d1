#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <drawpoint/instrumentation/ledger/detail/duration_histogram.hpp>
#include <drawpoint/instrumentation/event.hpp>

namespace drawpoint {

/// An action of one phase, over the folded steps that count: those that drew a batch and did not fail.
struct FoldedAction {
    Phase phase{};
    Action action{};
    DurationHistogram durations;
    double rates = 0;   ///< sum of samples per second over the steps; infinite if one step's is
    bool operator==(const FoldedAction&) const = default;
};

/// CPU time and waiting for a core of a stage. Only some of its calls may have been measured; they stand for all.
struct StageUsage {
    std::uint64_t calls = 0;           ///< calls whose CPU time is known
    std::int64_t ns = 0, cpu_ns = 0;   ///< their time and CPU time
    /// Calls of samples with a single stage: their time, and how much of it was spent waiting for a core.
    std::int64_t queued_of_ns = 0, run_queue_ns = 0;
    bool operator==(const StageUsage&) const = default;
};

/// A stage of a pipeline, over the folded samples.
struct FoldedStage {
    static constexpr std::uint32_t collate = ~std::uint32_t{0};   ///< the stage of whole batches
    std::uint8_t pipeline = 0;
    std::uint32_t stage = 0;
    DurationHistogram durations;
    std::uint64_t bytes = 0;   // read for whole samples; at stage 0
    StageUsage usage;
    bool operator==(const FoldedStage&) const = default;
};

struct FoldedWorker {
    std::uint16_t worker = 0;
    std::uint64_t samples = 0;
    std::int64_t busy_ns = 0;      ///< working on samples
    std::int64_t collate_ns = 0;   ///< collating batches
    bool operator==(const FoldedWorker&) const = default;
};

/// Where the time of draws went.
struct DrawSplit {
    std::int64_t callbacks_ns = 0, starved_ns = 0, handoff_ns = 0, transfer_ns = 0;
    std::int64_t order_ns = 0;   ///< part of starved_ns during which a complete batch waited behind an older one
    bool operator==(const DrawSplit&) const = default;
};

/// Totals of the rows that a recorder with bounded memory (`RecorderOptions::ledger_steps`) no longer keeps. One row
/// for each action of a phase, stage of a pipeline, and worker: about 1 MB in all, however long the run.
struct Folded {
    std::int64_t until_ns = std::numeric_limits<std::int64_t>::min();   ///< end of the last folded step
    std::uint64_t steps = 0, failed = 0, not_drawn = 0;                 ///< all; ended by an error; without a batch
    std::uint64_t samples = 0;                                          ///< drawn by these steps
    std::uint64_t batch_samples = 0;                                    ///< in the folded batches
    std::int64_t draws_ns = 0, batches_ns = 0, other_ns = 0;            ///< over all folded steps
    DrawSplit draw;                                                     ///< over the folded steps that count
    std::vector<FoldedAction> actions;                                  ///< sorted by (phase, action)
    std::vector<FoldedStage> stages;                                    ///< sorted by (pipeline, stage)
    std::vector<FoldedWorker> workers;                                  ///< sorted by worker
    bool operator==(const Folded&) const = default;
};

}   // namespace drawpoint
