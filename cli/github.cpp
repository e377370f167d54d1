#include "cli/github.hpp"

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "cli/program.hpp"
#include "cli/report_output.hpp"
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::cli {

void tell_github(bool passes, const std::string& verdict, const std::string& table) {
    print(fmt::format("::{} title=drawpoint gate::{}\n", passes ? "notice" : "error", printable(verdict)));
    const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
    if (!summary || *summary == '\0')
        return;
    std::ofstream file{summary, std::ios::app};
    file << "**drawpoint gate: " << verdict << "**\n\n" << table << "\n";
    if (!file.flush())
        throw Failure{fmt::format("{}: cannot be written", summary)};
}

}   // namespace drawpoint::cli
