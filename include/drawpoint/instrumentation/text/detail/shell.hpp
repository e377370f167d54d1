#pragma once

#include <string>
#include <string_view>

namespace drawpoint {

/// Quotes `text` for a POSIX shell, which reads the result as one word; text without special characters is unchanged.
[[nodiscard]] std::string shell_word(std::string_view text);

}   // namespace drawpoint
