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

// Paths are texts here: operator/ of libstdc++ 12's path crashes where memory runs out.

std::string text_of(const fs::path& root) { return root == "/" ? "" : root.string(); }

/// The cgroup's path below the mount, "/a/b".
std::optional<std::string> path_of(const std::string& root, std::string_view controller) {
    std::ifstream file{root + "/proc/self/cgroup"};
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
    const std::string top = text_of(root);
    const std::optional<std::string> own = path_of(top, controller);
    if (!own)
        return {};
    const std::vector<std::string> mounts =
        controller.empty() ? std::vector<std::string>{"", "unified"}
                           : std::vector<std::string>{std::string{controller}, std::string{controller} + ",cpuacct",
                                                      "cpuacct," + std::string{controller}};
    for (const std::string& mount : mounts) {   // one may link to another: only the first that has the file counts
        std::vector<fs::path> found;
        for (std::string path = *own; found.size() < most_levels; path.resize(path.rfind('/'))) {
            std::error_code ignored;
            if (path.ends_with('/'))
                path.pop_back();
            fs::path here{top + "/sys/fs/cgroup" + (mount.empty() ? "" : "/" + mount) + path + "/" + std::string{file}};
            if (fs::exists(here, ignored))
                found.push_back(std::move(here));
            if (path.find('/') == path.npos)
                break;
        }
        if (!found.empty())
            return found;
    }
    return {};
}

}   // namespace drawpoint
