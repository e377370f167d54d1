#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/page/svg.hpp"

namespace drawpoint {

/// A cell of a table: a text, or a number with the text that shows it.
struct PageCell {
    PageCell(std::string words) : text{std::move(words)} {}
    PageCell(std::string_view words) : text{words} {}
    PageCell(const char* words) : text{words} {}
    /// An unknown one is "-".
    PageCell(std::optional<double> number, std::string words)
        : text{number ? std::move(words) : "-"}, value{number}, is_number{true} {}

    std::string text;
    std::optional<double> value{};   ///< also in the page, so that a program reads it back exactly
    bool is_number = false;
};

/// A table. Columns of texts are aligned left.
struct PageTable {
    std::string_view caption;
    std::vector<std::string_view> titles;
    std::vector<std::vector<PageCell>> rows;
    std::optional<std::size_t> bold_row{};
};

// Pieces of a page. All texts are escaped but `body` and `html`.
[[nodiscard]] std::string element_of(const PageTable&);
[[nodiscard]] std::string figure_of(const Svg&, std::string_view caption);
[[nodiscard]] std::string paragraph_of(std::string_view text, std::string_view style = {});
[[nodiscard]] std::string heading_of(std::string_view text);
/// A number that a program can read back.
[[nodiscard]] std::string number_of(double value, std::string_view text);

/// A page that needs nothing from anywhere else: style, pictures and, to look closer at a plot, a script, without which
/// all else works. `body` follows the title, which is also the page's first heading. `renews`: the page asks its server
/// for itself again and again, unless its reader is at work in it, until one does not renew.
[[nodiscard]] std::string page_of(std::string_view title, std::string_view body, bool renews = false);

}   // namespace drawpoint
