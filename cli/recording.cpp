#include "cli/recording.hpp"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/program.hpp"
#include <drawpoint/instrumentation/import/chrome_trace.hpp>

namespace drawpoint::cli {

ReadTrace read_run(const std::string& file, std::uint64_t most_bytes) {
    if (!file.ends_with(".json") && !file.ends_with(".json.gz"))
        return read_trace(file, most_bytes);
    ImportedTrace trace = import_chrome_trace(file);
    return {.ledger = std::move(trace.ledger), .warning = fmt::format("{}", fmt::join(trace.warnings, "; "))};
}

Ledger read_steps(const std::string& file, bool or_operators, bool every_row) {
    ReadTrace trace = read_run(file, every_row ? 0 : most_report_bytes);
    if (trace.ledger.steps.empty() && (!or_operators || trace.ledger.operators.empty()))
        throw Failure{(trace.warning.empty() ? file : trace.warning) + ": no steps"};
    if (!trace.warning.empty())
        complain(trace.warning);
    return std::move(trace.ledger);
}

}   // namespace drawpoint::cli
