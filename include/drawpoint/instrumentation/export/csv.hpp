#pragma once

#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Writes one line per step of a sorted ledger, so in order of time, below a line of column names: step, epoch, batch,
/// phase, status, size, draw_begin_ns (since `Ledger::start_ns`), step_ns, draw_ns and its parts starved_ns, handoff_ns
/// and transfer_ns (the rest of draw_ns is callbacks), batch_ns and its parts forward_ns, predict_ns, loss_ns,
/// backward_ns, opt_step_ns, zero_grad_ns, callbacks_ns and other_ns, between_ns, loss, and cpu_ns, run_queue_ns and
/// between_run_queue_ns as in `StepRow`. Folded steps are missing. Durations are integer nanoseconds; the loss has
/// enough digits to be read back exactly; missing values are empty. Equal ledgers give equal bytes. A failing stream
/// shows in its state. Any thread.
void write_csv_steps(const Ledger&, std::ostream&);

}   // namespace drawpoint
