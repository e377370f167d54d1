#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/log_targets.hpp"
#include <drawpoint/diagnosis/logging/run_log.hpp>
#include <drawpoint/diagnosis/tuner/tuning_report.hpp>
#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/loop/loggers/logger.hpp>

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

/// A run's log of a format that has a logger, any but Prometheus', while it is written. What cannot be written ends it.
class OpenLog {
public:
    /// `run`: the recording, of which the log's run gets its name. Throws Failure naming what cannot be written.
    OpenLog(const RunLog&, const std::string& run);

    /// Logs what is new in the run, as RunLogger::update.
    void update(const Ledger& ledger) { run_.update(ledger); }
    /// Logs the rest, as RunLogger::finish, and says on stderr where it is.
    void finish(const Ledger&, const Summary&, const Diagnosis*);
    /// Throws Failure naming what cannot be written any more.
    void check() const;

private:
    std::string where_;
    std::unique_ptr<Logger> logger_;
    RunLogger run_;
};

/// Writes a run's log and says where on stderr. Throws Failure naming what cannot be written.
void write_run_log(const RunLog&, const Ledger&, const Summary&, const Diagnosis*);

/// Writes a file for Prometheus' collector, whole and renamed, for its reader may come at any time. Throws Failure
/// naming it.
void write_metrics(const std::string& file, const std::string& text);

}   // namespace drawpoint::cli
