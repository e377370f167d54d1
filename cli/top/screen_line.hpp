#pragma once

#include <cstdint>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace drawpoint::cli {

enum class Style : std::uint8_t { plain, dim, bold, red, yellow, green, cyan };

/// Columns that a UTF-8 text takes on a terminal: of East Asian characters two, of combining ones none. Control
/// characters and broken bytes count as one: make a text `printable` first. Any thread.
[[nodiscard]] std::size_t columns_of(std::string_view text) noexcept;

/// As much of the text as takes at most `columns`; if it is cut, it ends with `…`. Any thread.
[[nodiscard]] std::string cut(std::string_view text, std::size_t columns);

/// One line of a screen, which never becomes wider than the screen.
class ScreenLine {
public:
    ScreenLine(std::size_t width, bool colour) : width_{width}, colour_{colour} {}

    /// Appends as much of the text as fits, as `cut` does.
    ScreenLine& add(std::string_view text, Style style = Style::plain);
    /// Appends blanks up to this column, from 0.
    ScreenLine& to(std::size_t column);
    /// The same, so that a text of this many columns then ends at the right edge.
    ScreenLine& before_last(std::size_t columns) { return to(width_ > columns ? width_ - columns : 0); }
    [[nodiscard]] std::size_t left() const noexcept { return width_ > columns_ ? width_ - columns_ : 0; }
    [[nodiscard]] const std::string& text() const noexcept { return text_; }

private:
    std::size_t width_;
    bool colour_;
    std::size_t columns_ = 0;
    std::string text_;
};

/// A bar of `width` columns, filled for `share` (0 … 1) of them, in eighths.
[[nodiscard]] std::string bar_text(double share, std::size_t width);

/// A chart of one row with at most `width` columns, from 0 to the largest value. If there are more values, neighbours
/// are averaged.
[[nodiscard]] std::string sparkline(const std::vector<double>& values, std::size_t width);

/// The text in lines of at most `width` columns, broken at blanks; a longer word is cut.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width);

}   // namespace drawpoint::cli
