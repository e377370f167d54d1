#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace drawpoint {

/// Paths of `file` in this process's cgroup and its ancestors, the process's own first: in the hierarchy of version 2
/// (`controller` empty) or of one controller of version 1. Lists only existing files, from one mount, at most 16. Empty
/// if there are none.
[[nodiscard]] std::vector<std::filesystem::path> cgroup_files(const std::filesystem::path& root,
                                                              std::string_view controller, std::string_view file);

}   // namespace drawpoint
