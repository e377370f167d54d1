#include <drawpoint/instrumentation/ledger/device_time.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ranges>
#include <utility>

#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

constexpr std::array dry_parts{
    std::pair{&DeviceTotals::dry_starved_ns, &DeviceStepRow::dry_starved_ns},
    std::pair{&DeviceTotals::dry_handoff_ns, &DeviceStepRow::dry_handoff_ns},
    std::pair{&DeviceTotals::dry_transfer_ns, &DeviceStepRow::dry_transfer_ns},
    std::pair{&DeviceTotals::dry_callbacks_ns, &DeviceStepRow::dry_callbacks_ns},
    std::pair{&DeviceTotals::dry_step_ns, &DeviceStepRow::dry_step_ns},
    std::pair{&DeviceTotals::dry_between_ns, &DeviceStepRow::dry_between_ns},
    std::pair{&DeviceTotals::dry_launch_ns, &DeviceStepRow::dry_launch_ns},
};

void add(std::int64_t& sum, std::int64_t ns) noexcept { sum = wrapping_sum(sum, ns); }

std::int64_t difference(std::int64_t to_ns, std::int64_t from_ns) noexcept {
    return static_cast<std::int64_t>(wrapping_difference(to_ns, from_ns));
}

std::int64_t end_of(const Ledger& ledger, const StepRow& step) noexcept {
    const auto spans = ledger.spans_of(step);
    return spans.empty() ? step.draw_begin_ns + step.draw_ns + step.batch_ns : spans.back().begin_ns + spans.back().ns;
}

/// The dry time that a piece of the loop's time counts in.
std::int64_t DeviceStepRow::* part_of(const StepRow& step, const SpanRow& piece) noexcept {
    if (piece.span == Span::between)
        return &DeviceStepRow::dry_between_ns;
    if (piece.begin_ns >= step.draw_begin_ns + step.draw_ns)
        return &DeviceStepRow::dry_step_ns;
    switch (piece.span) {
    case Span::starved: return &DeviceStepRow::dry_starved_ns;
    case Span::handoff: return &DeviceStepRow::dry_handoff_ns;
    case Span::transfer: return &DeviceStepRow::dry_transfer_ns;
    default: return &DeviceStepRow::dry_callbacks_ns;
    }
}

}   // namespace

void add_to(DeviceTotals& totals, const DeviceStepRow& row) noexcept {
    ++totals.steps;
    add(totals.copy_wait_ns, difference(row.begin_ns, row.queued_ns));
    add(totals.span_ns, difference(row.end_ns, row.begin_ns));
    add(totals.draws_ns, row.draw_ns);
    add(totals.lag_ns, std::max<std::int64_t>(difference(row.end_ns, row.host_end_ns), 0));
    add(totals.forward_lag_ns, std::max<std::int64_t>(difference(row.forward_ns, row.host_forward_ns), 0));
    const std::int64_t dry_ns = difference(row.queued_ns, row.free_ns);
    add(totals.dry_ns, dry_ns);
    totals.uncertainty_ns = std::max(totals.uncertainty_ns, std::min(row.uncertainty_ns, dry_ns));
    for (const auto& [sum, part] : dry_parts)
        add(totals.*sum, row.*part);
}

void add_to(DeviceTotals& totals, const TransferRow& row) noexcept {
    ++totals.copies;
    totals.copied_bytes += row.bytes;
    add(totals.copy_ns, difference(row.end_ns, row.begin_ns));
}

void add_to(DeviceTotals& totals, const DeviceTotals& more) noexcept {
    totals.steps += more.steps;
    totals.copies += more.copies;
    totals.copied_bytes += more.copied_bytes;
    totals.uncertainty_ns = std::max(totals.uncertainty_ns, more.uncertainty_ns);
    for (const auto sum :
         {&DeviceTotals::dry_ns, &DeviceTotals::copy_wait_ns, &DeviceTotals::span_ns, &DeviceTotals::draws_ns,
          &DeviceTotals::lag_ns, &DeviceTotals::forward_lag_ns, &DeviceTotals::copy_ns})
        add(totals.*sum, more.*sum);
    for (const auto& [sum, part] : dry_parts)
        add(totals.*sum, more.*sum);
}

DeviceTotals device_totals(const Ledger& ledger) noexcept {
    DeviceTotals totals = ledger.folded.device;
    for (const DeviceStepRow& row : ledger.device_steps)
        add_to(totals, row);
    for (const TransferRow& row : ledger.transfers)
        add_to(totals, row);
    return totals;
}

const DeviceStepRow* device_step_of(const Ledger& ledger, const StepRow& step) noexcept {
    const std::int64_t end_ns = wrapping_sum(step.draw_begin_ns, step.draw_ns);
    auto at = std::ranges::lower_bound(ledger.device_steps, step.draw_begin_ns, {}, &DeviceStepRow::host_queued_ns);
    for (; at != ledger.device_steps.end() && at->host_queued_ns <= end_ns; ++at)
        if (at->step == step.step)
            return &*at;
    return nullptr;
}

UntimedSteps::UntimedSteps(const Ledger& ledger) noexcept : ledger_{&ledger} {
    for (const DeviceStepRow& row : ledger.device_steps)
        any_[static_cast<std::size_t>(row.phase)] = true;
}

bool UntimedSteps::has(const StepRow& step) const noexcept {
    return any_[static_cast<std::size_t>(step.phase)] && device_step_of(*ledger_, step) == nullptr;
}

void split_dry(const Ledger& ledger, DeviceStepRow& row) noexcept {
    for (const auto& [sum, part] : dry_parts)
        row.*part = 0;
    row.draw_ns = 0;
    const std::int64_t until_ns = std::min(row.host_queued_ns, row.queued_ns);
    row.dry_launch_ns = row.queued_ns - std::clamp(row.host_queued_ns, row.free_ns, row.queued_ns);
    for (const StepRow& step : ledger.steps | std::views::reverse) {
        if (end_of(ledger, step) <= std::min(row.free_ns, row.host_queued_ns))
            return;
        if (step.step == row.step && step.draw_begin_ns <= row.host_queued_ns &&
            row.host_queued_ns <= step.draw_begin_ns + step.draw_ns)
            row.draw_ns = step.draw_ns;
        for (const SpanRow& piece : ledger.spans_of(step)) {
            const std::int64_t ns =
                std::min(piece.begin_ns + piece.ns, until_ns) - std::max(piece.begin_ns, row.free_ns);
            if (ns > 0)
                row.*part_of(step, piece) += ns;
        }
    }
}

}   // namespace drawpoint
