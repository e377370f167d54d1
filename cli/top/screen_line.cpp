#include "cli/top/screen_line.hpp"

#include <algorithm>

namespace drawpoint::cli {

ScreenLine& ScreenLine::add(std::string_view text, TextStyle style) {
    const std::string shown = cut(text, left());
    text_ += styled(shown, style, colour_);
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

}   // namespace drawpoint::cli
