#include "cli/log_targets.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command_line.hpp"

namespace drawpoint::cli {

RunLog run_log_in(std::string_view option, std::string_view text) {
    const std::size_t equals = text.find('=');
    RunLog log{std::string{text.substr(0, equals)},
               equals == text.npos ? std::string{} : std::string{text.substr(equals + 1)}};
    const std::vector<std::string> formats{run_log_formats.begin(), run_log_formats.end()};
    if (std::ranges::find(formats, log.format) == formats.end() || log.path.empty())
        throw UsageError{fmt::format("{} must be FORMAT=PATH with a format of {}, got '{}'{}", option,
                                     fmt::join(formats, ", "), text, did_you_mean(log.format, formats))};
    check_log_path(log);
    return log;
}

void add_logs(CLI::App& app, std::vector<RunLog>& logs, std::string_view does) {
    app.add_option_function<std::vector<std::string>>(
           "--log",
           [&logs](const std::vector<std::string>& texts) {
               logs.clear();
               for (const std::string& text : texts)
                   logs.push_back(run_log_in("--log", text));
           },
           fmt::format("FORMAT=PATH: {}, for tensorboard, wandb, mlflow (folders), prometheus, csv, jsonl (files); "
                       "repeatable",
                       does))
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->default_str("[]")
        ->type_name(fmt::format("{}=PATH", fmt::join(run_log_formats, "=PATH|")));
}

void check_log_path(const RunLog& log) {
    if (log.path.ends_with(".gz") && (log.format == "csv" || log.format == "jsonl"))
        throw UsageError{fmt::format("{} {}: a log that grows line by line is not compressed", log.format, log.path)};
}

std::vector<std::string> files_of(const RunLog& log) {
    if (log.format == "csv")   // the second one is of histograms
        return {log.path,
                (log.path.ends_with(".csv") ? log.path.substr(0, log.path.size() - 4) : log.path) + ".summary.csv"};
    if (log.format == "jsonl" || log.format == "prometheus")
        return {log.path};
    return {};
}

}   // namespace drawpoint::cli
