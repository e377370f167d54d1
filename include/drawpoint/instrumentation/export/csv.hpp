#pragma once

#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Writes one row per step, in order of time, below a row of column names: step, epoch, batch, phase, status, size,
/// draw_begin_ns (since the run's start), step_ns, draw_ns and its parts starved_ns, handoff_ns and transfer_ns,
/// batch_ns and its actions, between_ns, loss. Durations are integer nanoseconds; the loss has enough digits to be read
/// back exactly; missing values are empty. Equal ledgers give equal bytes. A failing stream shows in its state. Any
/// thread.
void write_csv_steps(const Ledger&, std::ostream&);

}   // namespace drawpoint
