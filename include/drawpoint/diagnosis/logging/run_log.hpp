#pragma once

#include <span>

#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/loop/loggers/file_loggers.hpp>
#include <drawpoint/loop/loggers/logger.hpp>

namespace drawpoint {

/// Logs a recorded run, as if it had been logged while it ran: its settings; for each training step that the ledger has
/// a row of, at the time of its end, `drawpoint/draw_s`, `batch_s`, `step_s`, `samples_per_s`, `draw_share`,
/// `ready_batches` and `loss`; the durations of draws and batches as summaries; numbers of the report under `report/`,
/// with the values of its JSON; the report and the verdict as texts; how it ended. `diagnosis` may be null. The caller
/// calls `finish()`. Sorted ledger. O(rows log rows).
void log_run(const Ledger&, const Summary&, const Diagnosis* diagnosis, Logger&);

/// Charts of what `log_run` logs, for `TensorBoardLogger::log_charts`. Static storage.
[[nodiscard]] std::span<const ScalarChart> run_charts();

}   // namespace drawpoint
