#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drawpoint {

/// Whether a file of this name is treated as a shard: .tar, .tar.gz, .tgz, .tar.zst; not hidden.
[[nodiscard]] bool is_tar_name(std::string_view name);

/// Expands "a-{08..10}.{tar,tgz}" as a shell does: a-08.tar, a-08.tgz, a-09.tar … Throws std::invalid_argument naming
/// the pattern if it is malformed or gives more than 100,000 names.
[[nodiscard]] std::vector<std::string> expand_braces(const std::string& pattern);

/// The shards in `where`, a file, folder or pattern; at least one. Throws std::invalid_argument naming it.
[[nodiscard]] std::vector<std::string> tar_files(const std::string& where);

}   // namespace drawpoint
