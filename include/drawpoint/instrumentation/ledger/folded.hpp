#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <drawpoint/instrumentation/detail/wrapping.hpp>
#include <drawpoint/instrumentation/event.hpp>
#include <drawpoint/instrumentation/ledger/detail/column.hpp>
#include <drawpoint/instrumentation/ledger/detail/duration_histogram.hpp>

namespace drawpoint {

/// An action of one phase, over the folded steps that count (`Folded`).
struct FoldedAction {
    Phase phase{};
    Action action{};
    DurationHistogram durations;
    double rates = 0;   ///< sum of the steps' samples per second (`SummaryRow::samples_per_s`); infinite if one's is
    bool operator==(const FoldedAction&) const = default;
};

/// CPU time and waiting for a core of a stage, in nanoseconds, over those of its calls that were measured.
struct StageUsage {
    std::uint64_t calls = 0;           ///< calls whose CPU time is known
    std::int64_t ns = 0, cpu_ns = 0;   ///< their time and CPU time
    /// The measured calls of samples with a single stage: their time, and how much of it they waited for a core.
    std::int64_t queued_of_ns = 0, run_queue_ns = 0;
    bool operator==(const StageUsage&) const = default;
};

/// A stage of a pipeline, over the folded samples.
struct FoldedStage {
    static constexpr std::uint32_t collate = ~std::uint32_t{0};   ///< the stage of whole batches
    std::uint16_t pipeline = 0;
    std::uint32_t stage = 0;
    DurationHistogram durations;
    std::uint64_t bytes = 0;   ///< read from storage for whole samples; at stage 0
    StageUsage usage;
    bool operator==(const FoldedStage&) const = default;
};

/// A worker, over the folded samples and batches.
struct FoldedWorker {
    std::uint16_t worker = 0;
    std::uint64_t samples = 0;
    std::int64_t busy_ns = 0;      ///< working on samples
    std::int64_t collate_ns = 0;   ///< collating batches
    bool operator==(const FoldedWorker&) const = default;
};

/// Where the time of draws went, by `Span`. `callbacks_ns` has all that is in none of the others.
struct DrawSplit {
    std::int64_t callbacks_ns = 0, starved_ns = 0, handoff_ns = 0, transfer_ns = 0;
    std::int64_t order_ns = 0;   ///< part of starved_ns during which a complete batch waited behind an older one
    bool operator==(const DrawSplit&) const = default;
};

/// Totals of steps on a device and of copies to it, in nanoseconds (DeviceStepRow, TransferRow).
struct DeviceTotals {
    std::uint64_t steps = 0;
    std::int64_t dry_ns = 0, copy_wait_ns = 0, span_ns = 0;   ///< the three parts of a step's time there
    /// Of dry_ns, by what the loop did meanwhile, as in DeviceStepRow; what is in none of these was outside the steps.
    std::int64_t dry_starved_ns = 0, dry_handoff_ns = 0, dry_transfer_ns = 0, dry_callbacks_ns = 0;
    std::int64_t dry_step_ns = 0, dry_between_ns = 0, dry_launch_ns = 0;
    std::int64_t draws_ns = 0;         ///< of these steps, on the host
    std::int64_t lag_ns = 0;           ///< sum: how long after the loop's last command the device had done a step
    std::int64_t forward_lag_ns = 0;   ///< the same of the work up to the loss
    std::int64_t uncertainty_ns = 0;   ///< the most that a step's dry time may count in other parts of the loop's time
    std::uint64_t copies = 0, copied_bytes = 0;
    std::int64_t copy_ns = 0;   ///< of these copies, begin to end
    bool operator==(const DeviceTotals&) const = default;
    /// A device that is behind the loop by less than this part of a step's span keeps up with it.
    static constexpr double little_lag = 0.1;
    /// The time of these steps.
    [[nodiscard]] std::int64_t all_ns() const noexcept {
        return wrapping_sum(wrapping_sum(dry_ns, copy_wait_ns), span_ns);
    }
    /// What waiting for data cost the device: dry while the loop drew, and waiting for copies.
    [[nodiscard]] std::int64_t data_ns() const noexcept { return wrapping_sum(exposed_ns(), copy_wait_ns); }
    /// Of draws_ns, that during which the device was dry.
    [[nodiscard]] std::int64_t exposed_ns() const noexcept {
        return wrapping_sum(wrapping_sum(dry_starved_ns, dry_handoff_ns),
                            wrapping_sum(dry_transfer_ns, dry_callbacks_ns));
    }
};

/// Totals of rows that a recorder of bounded memory (`RecorderOptions::ledger_bytes`) or a recording of bounded size
/// (`limit_bytes`) no longer keeps. A row is *folded* when it is added to these totals and removed: the oldest steps,
/// with their batches and samples. A folded step counts in `draw` and `actions` if it drew a batch and no exception
/// other than a cancel ended it. One row for each action of a phase, stage of a pipeline, and worker: about 1 MB in
/// all, however long the run.
struct Folded {
    std::int64_t until_ns = std::numeric_limits<std::int64_t>::min();   ///< rows before this are folded
    std::uint64_t steps = 0, failed = 0, not_drawn = 0;                 ///< all; ended by an exception; without a batch
    std::uint64_t samples = 0;                                          ///< drawn by these steps
    std::uint64_t batch_samples = 0;                                    ///< in the folded batches
    std::int64_t draws_ns = 0, batches_ns = 0, other_ns = 0;            ///< over all folded steps
    DrawSplit draw;                                                     ///< over the folded steps that count
    DeviceTotals device;                                                ///< of steps on a device, and copies
    std::vector<FoldedAction> actions;                                  ///< sorted by (phase, action)
    std::vector<FoldedStage> stages;                                    ///< sorted by (pipeline, stage)
    std::vector<FoldedWorker> workers;                                  ///< sorted by worker
    bool operator==(const Folded&) const = default;
};

// The columns of each, as those of rows (rows.hpp); what is not listed is stored in messages of their own.
// clang-format off: one column per line
constexpr auto columns(const StageUsage*, auto with) {
    using R = StageUsage;
    using schema::Column, schema::Count;
    return with(Column{"calls", &R::calls, Count{1}},
                Column{"ns", &R::ns, Count{2}},
                Column{"cpu_ns", &R::cpu_ns, Count{3}},
                Column{"queued_of_ns", &R::queued_of_ns, Count{4}},
                Column{"run_queue_ns", &R::run_queue_ns, Count{5}});
}

constexpr auto columns(const DrawSplit*, auto with) {
    using R = DrawSplit;
    using schema::Column, schema::Count;
    return with(Column{"callbacks_ns", &R::callbacks_ns, Count{1}},
                Column{"starved_ns", &R::starved_ns, Count{2}},
                Column{"handoff_ns", &R::handoff_ns, Count{3}},
                Column{"transfer_ns", &R::transfer_ns, Count{4}},
                Column{"order_ns", &R::order_ns, Count{5}});
}

constexpr auto columns(const DeviceTotals*, auto with) {
    using R = DeviceTotals;
    using schema::Column, schema::Count;
    return with(Column{"steps", &R::steps, Count{1}},
                Column{"dry_ns", &R::dry_ns, Count{2}},
                Column{"copy_wait_ns", &R::copy_wait_ns, Count{3}},
                Column{"span_ns", &R::span_ns, Count{4}},
                Column{"dry_starved_ns", &R::dry_starved_ns, Count{5}},
                Column{"dry_handoff_ns", &R::dry_handoff_ns, Count{6}},
                Column{"dry_transfer_ns", &R::dry_transfer_ns, Count{7}},
                Column{"dry_callbacks_ns", &R::dry_callbacks_ns, Count{8}},
                Column{"dry_step_ns", &R::dry_step_ns, Count{9}},
                Column{"dry_between_ns", &R::dry_between_ns, Count{10}},
                Column{"dry_launch_ns", &R::dry_launch_ns, Count{11}},
                Column{"lag_ns", &R::lag_ns, Count{12}},
                Column{"uncertainty_ns", &R::uncertainty_ns, Count{13}},
                Column{"copies", &R::copies, Count{14}},
                Column{"copied_bytes", &R::copied_bytes, Count{15}},
                Column{"copy_ns", &R::copy_ns, Count{16}},
                Column{"draws_ns", &R::draws_ns, Count{17}},
                Column{"forward_lag_ns", &R::forward_lag_ns, Count{18}});
}

constexpr auto columns(const FoldedAction*, auto with) {
    using R = FoldedAction;
    using schema::Column, schema::Key;
    return with(Column{"phase", &R::phase, Key{1}},
                Column{"rates", &R::rates, Key{3}});
}

constexpr auto columns(const FoldedStage*, auto with) {
    using R = FoldedStage;
    using schema::Column, schema::Count, schema::Key, schema::PlusOne;
    return with(Column{"pipeline", &R::pipeline, Key{1}},
                Column{"stage", &R::stage, PlusOne{2}},
                Column{"bytes", &R::bytes, Count{3}});
}

constexpr auto columns(const FoldedWorker*, auto with) {
    using R = FoldedWorker;
    using schema::Column, schema::Count, schema::Key;
    return with(Column{"worker", &R::worker, Key{1}},
                Column{"samples", &R::samples, Count{2}},
                Column{"busy_ns", &R::busy_ns, Count{3}},
                Column{"collate_ns", &R::collate_ns, Count{4}});
}

constexpr auto columns(const Folded*, auto with) {
    using R = Folded;
    using schema::Column, schema::Count, schema::SinceStart;
    return with(Column{"until_ns", &R::until_ns, SinceStart{1}},
                Column{"steps", &R::steps, Count{2}},
                Column{"failed", &R::failed, Count{3}},
                Column{"not_drawn", &R::not_drawn, Count{4}},
                Column{"samples", &R::samples, Count{5}},
                Column{"batch_samples", &R::batch_samples, Count{6}},
                Column{"draws_ns", &R::draws_ns, Count{7}},
                Column{"batches_ns", &R::batches_ns, Count{8}},
                Column{"other_ns", &R::other_ns, Count{9}});
}
// clang-format on

}   // namespace drawpoint
