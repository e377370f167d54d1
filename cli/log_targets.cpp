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
    return log;
}

}   // namespace drawpoint::cli
