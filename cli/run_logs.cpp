#include "cli/run_logs.hpp"

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/prometheus.hpp"
#include "cli/report_output.hpp"
#include <drawpoint/diagnosis/logging/run_log.hpp>
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

/// A logger and where it writes.
struct Opened {
    std::unique_ptr<Logger> logger;
    std::string where;
};

/// Of a format that has a logger. `charts` are for TensorBoard.
Opened open_logger(const RunLog& log, const std::string& run, std::span<const ScalarChart> charts) {
    if (log.format == "tensorboard") {
        auto events = std::make_unique<TensorBoardLogger>(log.path);
        if (!charts.empty())
            events->log_charts("drawpoint", charts);
        std::string file = events->file().string();
        return {std::move(events), std::move(file)};
    }
    if (log.format == "wandb") {
        auto offline = std::make_unique<WandbLogger>(log.path);
        std::string file = offline->file().string();
        return {std::move(offline), std::move(file)};
    }
    if (log.format == "mlflow") {
        auto store = std::make_unique<MlflowLogger>(log.path, printable(run));
        std::string folder = store->folder().string();
        return {std::move(store), std::move(folder)};
    }
    if (log.format == "csv")
        return {std::make_unique<CsvLogger>(log.path), log.path};
    return {std::make_unique<JsonLinesLogger>(log.path), log.path};
}

/// Opens a logger, has it written to and ends it. Returns where that was. Throws Failure naming what cannot be written.
std::string write_with(const RunLog& log, const std::string& run, std::span<const ScalarChart> charts,
                       const std::function<void(Logger&)>& write) {
    try {
        const auto [logger, where] = open_logger(log, run, charts);
        write(*logger);
        logger->finish();
        if (const std::string error = logger->error(); !error.empty())
            throw Failure{error};
        return where;
    } catch (const std::system_error& error) {
        throw Failure{error.what()};
    }
}

}   // namespace

void write_run_log(const RunLog& log, const Ledger& ledger, const Summary& summary, const Diagnosis* diagnosis) {
    std::string where = log.path;
    if (log.format == "prometheus") {   // written whole and renamed: its reader may come at any time
        const std::string text = to_prometheus(summary, diagnosis);
        try {
            write_file_whole(log.path, log.path.ends_with(".gz"), [&](std::ostream& out) { out << text; });
        } catch (const std::system_error& error) {
            throw Failure{error.what()};
        }
    } else {
        where = write_with(log, name_of_run(summary.recording.file), run_charts(),
                           [&](Logger& logger) { log_run(ledger, summary, diagnosis, logger); });
    }
    complain(fmt::format("wrote {}", where));
}

void write_trials(const RunLog& log, const Tuning& tuning) {
    // For TensorBoard a run is a folder, and two logs in one folder are one run.
    const fs::path tuning_folder = fs::path{log.path} / fmt::format("tune-{}", std::time(nullptr));
    for (const TuneTrial& trial : tuning.log) {
        RunLog of_trial = log;
        if (log.format == "tensorboard")
            of_trial.path = (tuning_folder / name_of(trial)).string();
        (void)write_with(of_trial, name_of(trial), {}, [&](Logger& logger) { log_trial(trial, logger); });
    }
    complain(fmt::format("wrote {} runs to {}", tuning.log.size(), log.path));
}

}   // namespace drawpoint::cli
