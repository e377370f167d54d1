#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace drawpoint {

/// How a text for a terminal is written. It says the same without colour.
struct TextOptions {
    bool colour = false;       ///< ANSI sequences
    std::size_t width = 120;   ///< columns of the longest line, unless a name is longer; at least 40
};
static_assert(std::is_trivially_destructible_v<TextOptions>);

enum class TextStyle : std::uint8_t { plain, dim, bold, red, yellow, green, cyan };

/// The text between the ANSI sequences of a style; without `colour` or text, as it is. Any thread.
[[nodiscard]] std::string styled(std::string_view text, TextStyle style, bool colour);

/// The style of a share of time lost to drawing: green below 5 %, yellow below 20 %, red from there. Any thread.
[[nodiscard]] TextStyle style_of_draw(double share) noexcept;

/// Columns that a UTF-8 text takes on a terminal: of East Asian characters two, of combining ones and ANSI styles none.
/// Other control characters and broken bytes count as one: make a text `printable` first. Any thread.
[[nodiscard]] std::size_t columns_of(std::string_view text) noexcept;

/// As much of the text as takes at most `columns`; if it is cut, it ends with `…`. Any thread.
[[nodiscard]] std::string cut(std::string_view text, std::size_t columns);

/// The text and blanks that make it `columns` wide, before the text if it is aligned right. Any thread.
[[nodiscard]] std::string padded(std::string_view text, std::size_t columns, bool right = false);

/// A bar of `width` columns, filled for `share` (0 … 1) of them, in eighths. Any thread.
[[nodiscard]] std::string bar_text(double share, std::size_t width);

/// A chart of one row with at most `width` columns, from 0 to the largest value. If there are more values, neighbours
/// are averaged. Any thread.
[[nodiscard]] std::string sparkline(const std::vector<double>& values, std::size_t width);

/// The text in lines of at most `width` columns, broken at blanks; a longer word is cut in two. Any thread.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// A text of lines with those wider than `width` broken at blanks. What follows a break is indented like its line's
/// text, behind leading blanks and `- `, or by two columns if the line is not indented; words longer than a line
/// (paths) and rows of Markdown's tables are left whole. Any thread.
[[nodiscard]] std::string fitted(std::string_view text, std::size_t width);

/// A text with tables in another program's layout, no wider than `width`: blanks that all rows have between columns
/// shrink to one, then the widest column of names is cut, then the lines. Those outside tables are `fitted`. Any
/// thread.
[[nodiscard]] std::string fitted_tables(std::string_view text, std::size_t width);

/// A table for a terminal. One that is too wide is set with single blanks between columns, then without the columns in
/// `spare`, then with names cut, then with lines cut.
struct TextTable {
    std::vector<std::string> titles;    ///< empty: no line of titles
    std::string align = "l";            ///< of each column 'l' or 'r'; those beyond: 'r'
    std::vector<std::size_t> spare{};   ///< columns that a narrow terminal can do without, first the least useful
    std::size_t name = 0;               ///< the column to cut at last
    std::vector<std::vector<std::string>> rows{};   ///< as many cells each as there are columns
};

/// The table's lines, titles bold. Any thread.
[[nodiscard]] std::string to_text(const TextTable&, TextOptions = {});

}   // namespace drawpoint
