#pragma once

#include <string>

namespace drawpoint {

/// A linkage name as written in the source, without marks of clones; other names as they are.
[[nodiscard]] std::string demangled(const char* name);

/// The last part of a path.
[[nodiscard]] inline std::string file_name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}   // namespace drawpoint
