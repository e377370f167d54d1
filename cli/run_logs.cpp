#include "cli/run_logs.hpp"

#include <cerrno>
#include <filesystem>
#include <memory>
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

bool is_folder(std::string_view format) { return format == "tensorboard" || format == "wandb" || format == "mlflow"; }

}   // namespace

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
        if (is_folder(log.format)) {
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

void write_run_log(const RunLog& log, const Ledger& ledger, const Summary& summary, const Diagnosis* diagnosis) {
    try {
        std::string where = log.path;
        if (log.format == "prometheus") {   // written whole and renamed: its reader may come at any time
            const std::string text = to_prometheus(summary, diagnosis);
            write_file_whole(log.path, log.path.ends_with(".gz"), [&](std::ostream& out) { out << text; });
        } else {
            std::unique_ptr<Logger> logger;
            if (log.format == "tensorboard") {
                auto events = std::make_unique<TensorBoardLogger>(log.path);
                events->log_charts("drawpoint", run_charts());
                where = events->file().string();
                logger = std::move(events);
            } else if (log.format == "wandb") {
                auto offline = std::make_unique<WandbLogger>(log.path);
                where = offline->file().string();
                logger = std::move(offline);
            } else if (log.format == "mlflow") {
                auto store = std::make_unique<MlflowLogger>(log.path, printable(name_of_run(summary.recording.file)));
                where = store->folder().string();
                logger = std::move(store);
            } else if (log.format == "csv") {
                logger = std::make_unique<CsvLogger>(log.path);
            } else {
                logger = std::make_unique<JsonLinesLogger>(log.path);
            }
            log_run(ledger, summary, diagnosis, *logger);
            logger->finish();
            if (const std::string error = logger->error(); !error.empty())
                throw Failure{error};
        }
        complain(fmt::format("wrote {}", where));
    } catch (const std::system_error& error) {
        throw Failure{error.what()};
    }
}

}   // namespace drawpoint::cli
