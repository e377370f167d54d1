#include "cli/serve/open_metrics.hpp"

#include <algorithm>

namespace drawpoint::cli {

std::string open_metrics_of(std::string_view text) {
    constexpr std::string_view total = "_total ";
    std::string open;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = text.substr(begin, end - begin);
        begin = end + 1;
        const std::size_t name_end = line.starts_with("# ") ? line.find(' ', line.find(' ', 2) + 1) : line.npos;
        if (name_end != line.npos && line.substr(0, name_end + 1).ends_with(total))
            open.append(line.substr(0, name_end + 1 - total.size())).append(line.substr(name_end));
        else
            open += line;
        open += '\n';
    }
    return open + "# EOF\n";
}

}   // namespace drawpoint::cli
