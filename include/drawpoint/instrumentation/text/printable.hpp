#pragma once

#include <string>
#include <string_view>

namespace drawpoint {

/// `text` with control characters and broken UTF-8 written as `\n`, `\t` or `\x1b`, so that no file name can act on a
/// terminal or break a line. Any thread.
[[nodiscard]] std::string printable(std::string_view text);

}   // namespace drawpoint
