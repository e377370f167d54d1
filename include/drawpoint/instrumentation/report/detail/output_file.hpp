#pragma once

#include <string>
#include <string_view>

namespace drawpoint {

/// Whether two paths lead to the same file, whether or not it is there. An empty path leads to none.
[[nodiscard]] bool same_file(const std::string& a, const std::string& b);

/// To be called before the work whose result would be lost: tries to open the file for writing, and leaves no file that
/// was not there. A pipe is not tried, because closing it would be the end of the file for its reader. Throws
/// std::runtime_error naming the file and the reason.
void check_output_file(const std::string& file);

/// Replaces the content of the file. Throws std::runtime_error naming it and the reason.
void write_output_file(const std::string& file, std::string_view text);

}   // namespace drawpoint
