#include "cli/top/screen_line.hpp"

#include <algorithm>
#include <array>
#include <cwchar>

#include <locale.h>

namespace drawpoint::cli {
namespace {

/// Makes this thread read UTF-8 as long as it exists, whatever the user's locale is.
class Utf8 {
public:
    Utf8() noexcept : before_{locale() != locale_t{} ? uselocale(locale()) : locale_t{}} {}
    ~Utf8() {
        if (before_ != locale_t{})
            uselocale(before_);
    }
    Utf8(const Utf8&) = delete;
    Utf8& operator=(const Utf8&) = delete;

private:
    static locale_t locale() noexcept {
        static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{});
        return utf8;
    }
    locale_t before_;
};

struct Glyph {
    std::size_t bytes = 1, columns = 1;
};

Glyph first_glyph(std::string_view text) noexcept {
    wchar_t c = 0;
    std::mbstate_t state{};
    const std::size_t bytes = std::mbrtowc(&c, text.data(), text.size(), &state);
    if (bytes == 0 || bytes > text.size())   // a zero byte, or no UTF-8
        return {};
    const int columns = ::wcwidth(c);
    return {bytes, columns < 0 ? std::size_t{1} : static_cast<std::size_t>(columns)};
}

/// How many bytes of `text` take at most `columns`.
std::size_t bytes_within(std::string_view text, std::size_t columns) noexcept {
    const Utf8 utf8;
    std::size_t at = 0;
    while (at < text.size()) {
        const Glyph glyph = first_glyph(text.substr(at));
        if (glyph.columns > columns)
            break;
        columns -= glyph.columns;
        at += glyph.bytes;
    }
    return at;
}

constexpr std::string_view code_of(Style style) noexcept {
    switch (style) {
    case Style::plain: return "";
    case Style::dim: return "\x1b[2m";
    case Style::bold: return "\x1b[1m";
    case Style::red: return "\x1b[31m";
    case Style::yellow: return "\x1b[33m";
    case Style::green: return "\x1b[32m";
    case Style::cyan: return "\x1b[36m";
    }
    return "";
}

}   // namespace

std::size_t columns_of(std::string_view text) noexcept {
    const Utf8 utf8;
    std::size_t columns = 0;
    while (!text.empty()) {
        const Glyph glyph = first_glyph(text);
        columns += glyph.columns;
        text.remove_prefix(glyph.bytes);
    }
    return columns;
}

std::string cut(std::string_view text, std::size_t columns) {
    if (columns == 0 || bytes_within(text, columns) == text.size())
        return std::string{columns == 0 ? "" : text};
    return std::string{text.substr(0, bytes_within(text, columns - 1))} + "…";
}

ScreenLine& ScreenLine::add(std::string_view text, Style style) {
    const std::string shown = cut(text, left());
    const std::string_view code = colour_ && !shown.empty() ? code_of(style) : "";
    text_.append(code).append(shown).append(code.empty() ? "" : "\x1b[0m");
    columns_ += columns_of(shown);
    return *this;
}

ScreenLine& ScreenLine::to(std::size_t column) {
    column = std::min(column, width_);
    if (column > columns_) {
        text_.append(column - columns_, ' ');
        columns_ = column;
    }
    return *this;
}

std::string bar_text(double share, std::size_t width) {
    constexpr std::array<std::string_view, 8> parts{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const auto eighths = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(8 * width) + 0.5);
    std::string bar;
    for (std::size_t i = 0; i < eighths / 8; ++i)
        bar += "█";
    return bar += parts[eighths % 8];
}

std::string sparkline(const std::vector<double>& values, std::size_t width) {
    constexpr std::array<std::string_view, 8> steps{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const std::size_t columns = std::min(width, values.size());
    std::vector<double> means;
    for (std::size_t i = 0; i < columns; ++i) {
        const std::size_t from = i * values.size() / columns, to = (i + 1) * values.size() / columns;
        double sum = 0;
        for (std::size_t k = from; k < to; ++k)
            sum += values[k];
        means.push_back(sum / static_cast<double>(to - from));
    }
    const double most = means.empty() ? 0 : std::ranges::max(means);
    std::string line;
    for (const double mean : means)
        line +=
            steps[most > 0 ? std::min<std::size_t>(static_cast<std::size_t>(8 * std::max(mean, 0.0) / most), 7) : 0];
    return line;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
    std::vector<std::string> lines;
    width = std::max<std::size_t>(width, 2);   // of one character
    while (!text.empty()) {
        std::size_t end = bytes_within(text, width);
        if (end < text.size()) {
            const std::size_t blank = text.substr(0, end + 1).rfind(' ');
            end = blank != text.npos && blank > 0 ? blank : std::max<std::size_t>(end, 1);
        }
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(end);
        text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    }
    return lines;
}

}   // namespace drawpoint::cli
