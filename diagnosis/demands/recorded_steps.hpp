#pragma once

#include <cstdint>
#include <span>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

/// Takes the loop's side into the run: what each of `rows` (the steps of the window, in order) asks of the loop, and their
/// rate. `workers_cpu_ns`: what the workers computed meanwhile; what else the process did is the loop's.
void add_steps(RecordedRun&, const Ledger&, std::span<const StepRow* const> rows, double workers_cpu_ns);

/// A step's pieces of one kind, together.
[[nodiscard]] std::int64_t sum_of(const Ledger&, const StepRow&, Span);

}   // namespace drawpoint
