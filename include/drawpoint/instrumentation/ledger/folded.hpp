#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <drawpoint/instrumentation/ledger/duration_histogram.hpp>
#include <drawpoint/instrumentation/event.hpp>

namespace drawpoint {

/// An action of the steps that count.
struct FoldedAction {
    Phase phase{};
    Action action{};
    DurationHistogram durations;
    double rates = 0;   ///< sum of the steps' samples per second; infinite where one has none
    bool operator==(const FoldedAction&) const = default;
};

/// What was measured of a stage: where only some of its calls were, they speak for all.
struct StageUsage {
    std::uint64_t calls = 0;           ///< whose CPU time is known
    std::int64_t ns = 0, cpu_ns = 0;   ///< theirs; of these, spent computing
    std::int64_t queued_of_ns = 0,
                 run_queue_ns = 0;   ///< of calls of samples of one stage; of these, waiting for a core
    bool operator==(const StageUsage&) const = default;
};

/// A stage of a pipeline.
struct FoldedStage {
    static constexpr std::uint32_t collate = ~std::uint32_t{0};   ///< the stage of whole batches
    std::uint8_t pipeline = 0;
    std::uint32_t stage = 0;
    DurationHistogram durations;
    std::uint64_t bytes = 0;   // of whole samples, at the first stage
    StageUsage usage;
    bool operator==(const FoldedStage&) const = default;
};

struct FoldedWorker {
    std::uint16_t worker = 0;
    std::uint64_t samples = 0;
    std::int64_t busy_ns = 0;      ///< with samples
    std::int64_t collate_ns = 0;   ///< with whole batches
    bool operator==(const FoldedWorker&) const = default;
};

/// Where the time of draws went.
struct DrawSplit {
    std::int64_t callbacks_ns = 0, starved_ns = 0, handoff_ns = 0, transfer_ns = 0;
    std::int64_t order_ns = 0;   ///< of starved_ns: while a complete batch waited behind an older one
    bool operator==(const DrawSplit&) const = default;
};

/// What is left of the rows that a recorder of bounded memory (`RecorderOptions::ledger_steps`) no longer keeps. One row
/// an action of a phase, a stage of a pipeline, a worker: some 1 MB in all, however long the run.
struct Folded {
    std::int64_t until_ns = std::numeric_limits<std::int64_t>::min();   ///< end of the last step folded
    std::uint64_t steps = 0, failed = 0, not_drawn = 0;                 ///< all; left by an error; never drawn
    std::uint64_t samples = 0;                                          ///< drawn by them
    std::uint64_t batch_samples = 0;                                    ///< in the batches folded
    std::int64_t draws_ns = 0, batches_ns = 0, other_ns = 0;            ///< of all steps folded
    DrawSplit draw;                                                     ///< of those that count
    std::vector<FoldedAction> actions;                                  ///< by (phase, action)
    std::vector<FoldedStage> stages;                                    ///< by (pipeline, stage)
    std::vector<FoldedWorker> workers;                                  ///< by worker
    bool operator==(const Folded&) const = default;
};

}   // namespace drawpoint
