#pragma once

#include <string>
#include <string_view>

namespace drawpoint {

/// Escapes control characters and invalid UTF-8 in `text` as `\n`, `\t` or `\x1b`, so that a file name can neither
/// control the terminal nor break a line. Any thread.
[[nodiscard]] std::string printable(std::string_view text);

/// The same for text and attributes of HTML and XML: what they reserve is replaced by references.
[[nodiscard]] std::string printable_markup(std::string_view text);

}   // namespace drawpoint
