#pragma once

#include <array>

#include <drawpoint/instrumentation/ledger/folded.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Totals over all steps on a device and all copies to it, folded ones included. O(rows). Any thread.
[[nodiscard]] DeviceTotals device_totals(const Ledger&) noexcept;

/// Adds a row, or other totals.
void add_to(DeviceTotals&, const DeviceStepRow&) noexcept;
void add_to(DeviceTotals&, const TransferRow&) noexcept;
void add_to(DeviceTotals&, const DeviceTotals&) noexcept;

/// What the device did in the step, if it was timed; null else. Valid until `device_steps` changes. O(log rows).
[[nodiscard]] const DeviceStepRow* device_step_of(const Ledger&, const StepRow&) noexcept;

/// Whether steps were timed on a device, but not this one.
class UntimedSteps {
public:
    explicit UntimedSteps(const Ledger&) noexcept;   ///< refers to it; O(rows)
    [[nodiscard]] bool has(const StepRow&) const noexcept;

private:
    const Ledger* ledger_;
    std::array<bool, 2> any_{};   // by Phase: whether any step of it was timed
};

/// Sets the dry times of the row from the loop's pieces: where the time from `free_ns` to `host_queued_ns` overlaps
/// with those of the ledger's steps, which must be in order of time; `dry_launch_ns` is the rest up to `queued_ns`.
/// Also sets `draw_ns`. O(pieces in that time).
void split_dry(const Ledger&, DeviceStepRow&) noexcept;

}   // namespace drawpoint
