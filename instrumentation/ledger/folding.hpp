#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include "instrumentation/ledger/order_loss.hpp"

namespace drawpoint {

/// Whether a step is in the rows of its phase: it left its batch whole or by a cancel of its own level.
[[nodiscard]] inline bool counts(const StepRow& step) noexcept {
    return step.size > 0 && step.status != StepStatus::failed;
}

/// Samples per second during each action that the step has; during the draw: what drawing costs, never above 0.
[[nodiscard]] std::array<double, action_count> rates_of(const StepDurations&, std::uint32_t size) noexcept;

void add_to_split(DrawSplit&, const Ledger&, const OrderLoss&, const StepRow&) noexcept;

/// What each of a run's samples took: `calls` of them `ns`.
struct Share {
    std::int64_t ns = 0;
    std::uint64_t calls = 0;
};
/// A run's time among its samples, to the nanosecond: the shares add up to `ns`.
[[nodiscard]] std::array<Share, 2> shares_of(std::int64_t ns, std::uint32_t samples) noexcept;

/// Adds what a sample says of its stage number `stage`, if it was chosen to be measured.
void add_usage(StageUsage&, const SampleRow&, std::span<const StageRow> stages, std::size_t stage) noexcept;

/// Drops every other one of the `old` first rows: totals, so that each that stays says as much of twice the time.
void thin(std::vector<HostRow>& host, std::size_t old);

/// Folds all steps but the last `keep` into `Ledger::folded`, with the batches taken and the samples begun before what
/// these need; what rings dropped before is merged into one row a ring. Of the settings before, each loader's last one
/// stays; of the host's rows before, at most 1024, as far apart. The first step of all, the first of each phase
/// that counts and the first and the last training step that have a loss stay. Of these, those older than the last `keep` stay
/// without batches, so that no time lost to order is found in them. `ledger` holds its steps in order of time;
/// `open` are the passes that have not ended. O(rows kept).
void fold(Ledger& ledger, std::span<PassRow> open, std::size_t keep);

}   // namespace drawpoint
