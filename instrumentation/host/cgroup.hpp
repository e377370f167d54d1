#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace drawpoint {

/// The places of `file` in this process's cgroup and in those above it, its own first: of version 2 (`controller` empty) or
/// of one controller of version 1. Only such as exist, of one mount, at most 16. Empty: there is no such cgroup.
[[nodiscard]] std::vector<std::filesystem::path> cgroup_files(const std::filesystem::path& root,
                                                              std::string_view controller, std::string_view file);

}   // namespace drawpoint
