#pragma once

#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Writes one row a step, in order of time, under a row of column names: step, epoch, batch, phase, status, size,
/// draw_begin_ns (since the run's start), step_ns, draw_ns and its starved_ns, handoff_ns and transfer_ns, batch_ns and
/// the actions in it, between_ns, loss. Durations are whole nanoseconds, the loss as many digits as give it back
/// exactly; what a step does not have is empty. Equal ledgers give equal bytes. A failing stream shows in its state.
/// Any thread.
void write_csv_steps(const Ledger&, std::ostream&);

}   // namespace drawpoint
