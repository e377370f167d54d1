#include <drawpoint/instrumentation/text/terminal.hpp>

#include <algorithm>
#include <array>
#include <cwchar>
#include <utility>

#include <locale.h>

namespace drawpoint {
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
    if (text.starts_with("\x1b["))   // a style
        if (const std::size_t end = text.find_first_not_of("0123456789;", 2); end < text.size() && text[end] == 'm')
            return {end + 1, 0};
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

constexpr std::string_view code_of(TextStyle style) noexcept {
    switch (style) {
    case TextStyle::plain: return "";
    case TextStyle::dim: return "\x1b[2m";
    case TextStyle::bold: return "\x1b[1m";
    case TextStyle::red: return "\x1b[31m";
    case TextStyle::yellow: return "\x1b[33m";
    case TextStyle::green: return "\x1b[32m";
    case TextStyle::cyan: return "\x1b[36m";
    }
    return "";
}
constexpr std::string_view end_of_style = "\x1b[0m";

}   // namespace

std::string styled(std::string_view text, TextStyle style, bool colour) {
    const std::string_view code = colour && !text.empty() ? code_of(style) : "";
    return code.empty() ? std::string{text} : std::string{code}.append(text).append(end_of_style);
}

TextStyle style_of_draw(double share) noexcept {
    return share >= 0.2 ? TextStyle::red : share >= 0.05 ? TextStyle::yellow : TextStyle::green;
}

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
    std::string shown{text.substr(0, bytes_within(text, columns - 1))};
    const bool is_styled = shown.find('\x1b') != shown.npos;
    return shown.append("…").append(is_styled ? end_of_style : "");
}

std::string padded(std::string_view text, std::size_t columns, bool right) {
    const std::string blanks(columns - std::min(columns, columns_of(text)), ' ');
    return right ? blanks + std::string{text} : std::string{text} + blanks;
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

std::string fitted(std::string_view text, std::size_t width) {
    std::string all;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
        if (indent == 0 || line.substr(indent).starts_with("- "))
            indent += 2;
        indent = std::min(indent, width / 2);
        const bool is_row_of_markdown = line.starts_with('|');
        for (std::size_t room = width; !is_row_of_markdown; room = width - indent) {
            const std::size_t within = bytes_within(line, room);
            if (within == line.size())
                break;
            const std::size_t text_begins = std::min(line.find_first_not_of(' '), line.size());
            std::size_t blank = line.substr(0, within + 1).rfind(' ');
            if (blank == line.npos || blank <= text_begins)   // a word longer than the line
                blank = line.find(' ', std::max(within, text_begins));
            if (blank == line.npos)
                break;
            all.append(line.substr(0, line.find_last_not_of(' ', blank) + 1)).append("\n").append(indent, ' ');
            line.remove_prefix(std::min(line.find_first_not_of(' ', blank), line.size()));
        }
        all.append(line) += '\n';
    }
    return all;
}

std::string to_text(const TextTable& table, TextOptions options) {
    const bool has_titles = !table.titles.empty();
    const std::size_t columns = has_titles ? table.titles.size() : table.rows.empty() ? 0 : table.rows.front().size();
    std::vector<std::size_t> widths(columns, 0);
    const auto measure = [&](const std::vector<std::string>& row) {
        for (std::size_t i = 0; i < columns; ++i)
            widths[i] = std::max(widths[i], columns_of(row[i]));
    };
    measure(has_titles ? table.titles : std::vector<std::string>(columns));
    std::ranges::for_each(table.rows, measure);

    std::vector<bool> dropped(columns, false);
    std::size_t gap = 2;
    const auto needed = [&] {
        std::size_t sum = 0, shown = 0;
        for (std::size_t i = 0; i < columns; ++i)
            if (!dropped[i]) {
                sum += widths[i];
                ++shown;
            }
        return sum + gap * (shown > 0 ? shown - 1 : 0);
    };
    if (needed() > options.width)
        gap = 1;
    for (const std::size_t column : table.spare)
        if (needed() > options.width)
            dropped[column] = true;
    if (needed() > options.width && table.name < columns) {
        constexpr std::size_t least = 8;
        std::size_t& name = widths[table.name];
        name = std::min(name, std::max(least, name - std::min(name, needed() - options.width)));
    }

    const auto line_of = [&](const std::vector<std::string>& row) {
        std::string line;
        bool is_first = true;
        for (std::size_t i = 0; i < columns; ++i) {
            if (dropped[i])
                continue;
            line.append(std::exchange(is_first, false) ? 0 : gap, ' ');
            line += padded(i == table.name ? cut(row[i], widths[i]) : row[i], widths[i],
                           i >= table.align.size() || table.align[i] == 'r');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        return cut(line, options.width);
    };
    std::string text = has_titles ? styled(line_of(table.titles), TextStyle::bold, options.colour) + "\n" : "";
    for (const auto& row : table.rows)
        text += line_of(row) + "\n";
    return text;
}

}   // namespace drawpoint
