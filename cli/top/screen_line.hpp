#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint::cli {

/// One line of a screen, which never becomes wider than the screen.
class ScreenLine {
public:
    ScreenLine(std::size_t width, bool colour) : width_{width}, colour_{colour} {}

    /// Appends as much of the text as fits, as `cut` does.
    ScreenLine& add(std::string_view text, TextStyle style = TextStyle::plain);
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

}   // namespace drawpoint::cli
