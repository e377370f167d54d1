#include "cli/recording.hpp"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <drawpoint/instrumentation/import/chrome_trace.hpp>

namespace drawpoint::cli {

ReadTrace read_run(const std::string& file) {
    if (!file.ends_with(".json") && !file.ends_with(".json.gz"))
        return read_trace(file);
    ImportedTrace trace = import_chrome_trace(file);
    return {.ledger = std::move(trace.ledger), .warning = fmt::format("{}", fmt::join(trace.warnings, "; "))};
}

}   // namespace drawpoint::cli
