#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include <drawpoint/instrumentation/ledger/detail/order_loss.hpp>

namespace drawpoint {

/// Whether a step counts in the rows of its phase: it drew a batch and ended normally or by a cancel.
[[nodiscard]] inline bool counts(const StepRow& step) noexcept {
    return step.size > 0 && step.status != StepStatus::failed;
}

/// Samples per second during each action of the step; of the draw, what it costs the step's rate (never above 0).
[[nodiscard]] std::array<double, action_count> rates_of(const StepDurations&, std::uint32_t size) noexcept;

void add_to_split(DrawSplit&, const Ledger&, const OrderLoss&, const StepRow&) noexcept;

/// `calls` samples took `ns` each.
struct Share {
    std::int64_t ns = 0;
    std::uint64_t calls = 0;
};
/// Divides the time of a run of samples among them, so that the shares add up to exactly `ns`.
[[nodiscard]] std::array<Share, 2> shares_of(std::int64_t ns, std::uint32_t samples) noexcept;

/// Adds what was measured of the sample in stage number `stage`, if anything was.
void add_usage(StageUsage&, const SampleRow&, std::span<const StageRow> stages, std::size_t stage) noexcept;

/// Drops every other one of the first `old` rows. Rows are running totals, so only resolution is lost.
void thin(std::vector<HostRow>& host, std::size_t old);

/// Folds all steps but the last `keep` into `Ledger::folded`, with the batches taken and samples begun before those
/// that the kept steps need. Older drops are merged into one row per ring. Of older settings, each loader's last one is
/// kept; of older host rows, at most 1024, spread over their time. Also kept are the first step, the first step of each
/// phase that counts, and the first and last training step with a loss; those older than the last `keep` lose their
/// batches, so no time lost to order is found in them. Of the batches after the last step, which are drawn without
/// steps, folds all but the last `keep`. `ledger` must hold its steps in order of time; `open` are the
/// passes that have not ended. O(rows kept).
void fold(Ledger& ledger, std::span<PassRow> open, std::size_t keep);
/// Drops every other host row from before the rows that are kept, until there are at most `most`, from 16 to 1024.
void thin_old_host(Ledger& ledger, std::size_t most);

}   // namespace drawpoint
