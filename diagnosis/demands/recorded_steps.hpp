#pragma once

#include <cstdint>
#include <span>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

/// Adds the loop's side to the run: what each of `rows` (the steps of the window, in order) takes of the loop, and
/// their rate. `loader_cpu_ns`: CPU time of the loader meanwhile; all other CPU time of the process is the loop's.
void add_steps(RecordedRun&, const Ledger&, std::span<const StepRow* const> rows, double loader_cpu_ns);

/// Total length of a step's pieces of one kind.
[[nodiscard]] std::int64_t sum_of(const Ledger&, const StepRow&, Span);

}   // namespace drawpoint
