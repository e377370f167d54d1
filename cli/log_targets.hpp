#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>

namespace drawpoint::cli {

/// What a run can be logged for, after the fact: trackers of experiments, and Prometheus.
inline constexpr std::array<std::string_view, 6> run_log_formats{"tensorboard", "wandb", "mlflow",
                                                                 "prometheus",  "csv",   "jsonl"};

/// A format and where to: a folder for trackers, else a file.
struct RunLog {
    std::string format, path;
};

/// Throws UsageError for a compressed file, which only Prometheus' text may be.
void check_log_path(const RunLog&);

/// The files that a log of this path replaces; of trackers none, for they add a run to a folder.
[[nodiscard]] std::vector<std::string> files_of(const RunLog&);

/// Reads "tensorboard=DIR". Throws UsageError naming `option`.
[[nodiscard]] RunLog run_log_in(std::string_view option, std::string_view text);

/// Adds --log, which sets `logs`; both stay where they are until `app` has parsed. `does`: its help.
void add_logs(CLI::App& app, std::vector<RunLog>& logs, std::string_view does);

}   // namespace drawpoint::cli
