#include "instrumentation/host/cgroup.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace drawpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_levels = 16;

std::optional<fs::path> path_of(const fs::path& root, std::string_view controller) {
    std::ifstream file{root / "proc/self/cgroup"};
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find(':'), second = first == line.npos ? first : line.find(':', first + 1);
        if (second == line.npos)
            continue;
        bool here = controller.empty() && first + 1 == second;
        std::istringstream names{line.substr(first + 1, second - first - 1)};
        for (std::string name; std::getline(names, name, ',');)
            here = here || name == controller;
        if (!here)
            continue;
        // For a cgroup outside this namespace the kernel writes "/../other"; such a cgroup is not mounted here.
        const std::string path = line.substr(second + 1);
        return path.find("..") != path.npos || path.find('\0') != path.npos ? "" : path;
    }
    return std::nullopt;
}

}   // namespace

std::vector<fs::path> cgroup_files(const fs::path& root, std::string_view controller, std::string_view file) {
    const std::optional<fs::path> own = path_of(root, controller);
    if (!own)
        return {};
    const std::vector<std::string> mounts =
        controller.empty() ? std::vector<std::string>{"", "unified"}
                           : std::vector<std::string>{std::string{controller}, std::string{controller} + ",cpuacct",
                                                      "cpuacct," + std::string{controller}};
    for (const std::string& mount : mounts) {   // one may link to another: only the first that has the file counts
        std::vector<fs::path> found;
        for (fs::path path = own->relative_path(); found.size() < most_levels; path = path.parent_path()) {
            std::error_code ignored;
            if (fs::path here = root / "sys/fs/cgroup" / mount / path / file; fs::exists(here, ignored))
                found.push_back(std::move(here));
            if (path.empty())
                break;
        }
        if (!found.empty())
            return found;
    }
    return {};
}

}   // namespace drawpoint
