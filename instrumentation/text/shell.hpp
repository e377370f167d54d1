#pragma once

#include <string>
#include <string_view>

namespace drawpoint {

/// `text` as a POSIX shell reads it back as one word, whatever it is: as it stands where that is plain, else in quotes.
[[nodiscard]] std::string shell_word(std::string_view text);

}   // namespace drawpoint
