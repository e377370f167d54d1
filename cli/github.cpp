#include "cli/github.hpp"

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "cli/program.hpp"
#include "cli/report_output.hpp"
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::cli {

bool tell_github(bool passes, const std::string& verdict, const std::string& table) {
    print(fmt::format("::{} title=drawpoint gate::{}\n", passes ? "notice" : "error", printable(verdict)));
    const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
    if (!summary || *summary == '\0')
        return true;
    std::ofstream file{summary, std::ios::app};
    file << "**drawpoint gate: " << printable(verdict) << "**\n\n" << table << "\n";
    if (file.flush())
        return true;
    complain(fmt::format("GITHUB_STEP_SUMMARY: {}: cannot be written", summary));
    return false;
}

}   // namespace drawpoint::cli
