#include "cli/run_logs.hpp"

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/prometheus.hpp"
#include "cli/report_output.hpp"
#include <drawpoint/instrumentation/export/file.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>
#include <drawpoint/loop/loggers/file_loggers.hpp>
#include <drawpoint/loop/loggers/tracker_loggers.hpp>

namespace drawpoint::cli {
namespace {

namespace fs = std::filesystem;

std::string name_of_run(const std::string& recording) {
    const std::string name = fs::path{recording}.stem().string();
    return name.empty() ? "drawpoint" : name;
}

}   // namespace

bool takes_runs(std::string_view format) noexcept {
    return format == "tensorboard" || format == "wandb" || format == "mlflow";
}

std::string usual_path(std::string_view format, const std::string& recording) {
    if (format == "tensorboard")
        return (fs::path{"runs"} / name_of_run(recording)).string();
    if (format == "wandb")
        return "wandb";
    if (format == "mlflow")
        return "mlruns";
    return fs::path{recording}.replace_extension(format == "prometheus" ? "prom" : "jsonl").string();
}

void check_run_logs(const std::vector<RunLog>& logs) {
    for (const RunLog& log : logs) {
        if (takes_runs(log.format)) {
            std::error_code failed;
            fs::create_directories(log.path, failed);
            if (!failed && ::access(log.path.c_str(), W_OK | X_OK) != 0)
                failed = {errno, std::generic_category()};
            if (failed)
                throw Failure{fmt::format("{}: {}", log.path, failed.message())};
        } else {
            check_files({.json_files = {log.path}}, "--log", "");   // throws if it cannot be written
        }
    }
}

namespace {

/// Of a format that has a logger. Sets `where` it writes. `charts` are for TensorBoard.
std::unique_ptr<Logger> open_logger(const RunLog& log, const std::string& run, std::span<const ScalarChart> charts,
                                    std::string& where) {
    where = log.path;
    try {
        if (log.format == "tensorboard") {
            auto events = std::make_unique<TensorBoardLogger>(log.path);
            if (!charts.empty())
                events->log_charts("drawpoint", charts);
            where = events->file().string();
            return events;
        }
        if (log.format == "wandb") {
            auto offline = std::make_unique<WandbLogger>(log.path);
            where = offline->file().string();
            return offline;
        }
        if (log.format == "mlflow") {
            auto store = std::make_unique<MlflowLogger>(log.path, printable(run));
            where = store->folder().string();
            return store;
        }
        if (log.format == "csv")
            return std::make_unique<CsvLogger>(log.path);
        return std::make_unique<JsonLinesLogger>(log.path);
    } catch (const std::system_error& error) {
        throw Failure{error.what()};
    }
}

void check_logger(const Logger& logger) {
    if (const std::string error = logger.error(); !error.empty())
        throw Failure{error};
}

}   // namespace

OpenLog::OpenLog(const RunLog& log, const std::string& run)
    : logger_{open_logger(log, name_of_run(run), run_charts(), where_)}, run_{*logger_} {}

void OpenLog::finish(const Ledger& ledger, const Summary& summary, const Diagnosis* diagnosis) {
    run_.finish(ledger, summary, diagnosis);
    logger_->finish();
    check();
    complain(fmt::format("wrote {}", where_));
}

void OpenLog::check() const { check_logger(*logger_); }

void write_metrics(const std::string& file, const std::string& text) {
    try {
        write_file_whole(file, file.ends_with(".gz"), [&](std::ostream& out) { out << text; });
    } catch (const std::system_error& error) {
        throw Failure{error.what()};
    }
}

void write_run_log(const RunLog& log, const Ledger& ledger, const Summary& summary, const Diagnosis* diagnosis) {
    if (log.format != "prometheus")
        return OpenLog{log, summary.recording.file}.finish(ledger, summary, diagnosis);
    write_metrics(log.path, to_prometheus(summary, diagnosis));
    complain(fmt::format("wrote {}", log.path));
}

void write_trials(const RunLog& log, const Tuning& tuning) {
    // For TensorBoard a run is a folder, and two logs in one folder are one run.
    const fs::path tuning_folder = fs::path{log.path} / fmt::format("tune-{}", std::time(nullptr));
    for (const TuneTrial& trial : tuning.log) {
        RunLog of_trial = log;
        if (log.format == "tensorboard")
            of_trial.path = (tuning_folder / name_of(trial)).string();
        std::string where;
        const auto logger = open_logger(of_trial, name_of(trial), {}, where);
        log_trial(trial, *logger);
        logger->finish();
        check_logger(*logger);
    }
    complain(fmt::format("wrote {} runs to {}", tuning.log.size(), log.path));
}

}   // namespace drawpoint::cli
