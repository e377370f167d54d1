#include <drawpoint/instrumentation/text/printable.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

namespace drawpoint {
namespace {

/// Length in bytes of the code point that `text` begins with; 0 if it is not valid UTF-8 or must not be shown.
std::size_t shown_bytes(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x80)
        return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
    const std::size_t length = byte(0) >= 0xC2 && byte(0) < 0xE0   ? 2
                               : byte(0) >= 0xE0 && byte(0) < 0xF0 ? 3
                               : byte(0) >= 0xF0 && byte(0) < 0xF5 ? 4
                                                                   : 0;
    if (length == 0 || text.size() < length)
        return 0;
    char32_t point = byte(0) & (0xFFu >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80)
            return 0;
        point = (point << 6) | (byte(i) & 0x3Fu);
    }
    constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
    const bool control = point < 0xA0 || point == 0x2028 || point == 0x2029 || (point >= 0x202A && point <= 0x202E) ||
                         (point >= 0x2066 && point <= 0x2069);   // includes those that change the text direction
    const bool wrong = point < smallest[length] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000);
    return control || wrong ? 0 : length;
}

}   // namespace

std::string printable(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t shown = shown_bytes(text);
        if (shown > 0)
            out += text.substr(0, shown);
        else if (text.front() == '\n')
            out += "\\n";
        else if (text.front() == '\t')
            out += "\\t";
        else
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
        text.remove_prefix(std::max<std::size_t>(shown, 1));
    }
    return out;
}

std::string printable_markup(std::string_view text) {
    std::string out;
    for (const char c : printable(text))
        out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
    return out;
}

}   // namespace drawpoint
