#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/log_targets.hpp"
#include <drawpoint/diagnosis/tuner/tuning_report.hpp>
#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::cli {

/// Where a recording goes by its format's convention: `runs/NAME`, `wandb`, `mlruns`,
/// `NAME.prom`, `NAME.jsonl`.
[[nodiscard]] std::string usual_path(std::string_view format, const std::string& recording);

/// Makes sure that the logs can be written, before the work that they are of. Throws Failure naming the first that
/// cannot.
void check_run_logs(const std::vector<RunLog>&);

/// Whether a log of this format is a folder of runs, to which each log adds one.
[[nodiscard]] bool takes_runs(std::string_view format) noexcept;

/// Writes each trial as a run of its own, to a log that `takes_runs`, and says where on stderr. Throws Failure naming
/// what cannot be written.
void write_trials(const RunLog&, const Tuning&);

/// Writes a run's log and says where on stderr. Throws Failure naming what cannot be written.
void write_run_log(const RunLog&, const Ledger&, const Summary&, const Diagnosis*);

}   // namespace drawpoint::cli
