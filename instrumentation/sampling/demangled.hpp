#pragma once

#include <string>

namespace drawpoint {

/// The demangled name, without suffixes of compiler-made clones; names that are not mangled stay as they are.
[[nodiscard]] std::string demangled(const char* name);

/// The last component of a path.
[[nodiscard]] inline std::string file_name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}   // namespace drawpoint
