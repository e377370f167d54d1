#include <drawpoint/instrumentation/text/detail/shell.hpp>

#include <algorithm>
#include <cctype>

namespace drawpoint {

std::string shell_word(std::string_view text) {
    const bool plain = !text.empty() && std::ranges::all_of(text, [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) ||
               std::string_view{"-_./=:,+%@"}.find(c) != std::string_view::npos;
    });
    if (plain)
        return std::string{text};
    std::string word = "'";
    for (const char c : text)
        word += c == '\'' ? std::string{"'\\''"} : std::string(1, c);
    return word + "'";
}

}   // namespace drawpoint
