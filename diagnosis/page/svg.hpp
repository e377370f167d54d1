#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace drawpoint {

/// Builds one picture. Coordinates are pixels of a drawing that its page may scale. `style` is one or several classes
/// of `picture_style`, which stand for a colour in light and in dark; texts are escaped.
class Svg {
public:
    /// `about` is what a screen reader says in place of the picture.
    Svg(double width, double height, std::string_view about);

    /// `tip` is shown under the pointer.
    void rect(double x, double y, double width, double height, std::string_view style, std::string_view tip = {});
    void circle(double x, double y, double radius, std::string_view style, std::string_view tip = {});
    void line(double x1, double y1, double x2, double y2, std::string_view style);
    /// `shape` is the attribute `d`.
    void path(std::string_view shape, std::string_view style, std::string_view tip = {});
    void text(double x, double y, std::string_view text, std::string_view style = {});
    /// As `text`, and a script moves it with what is shown of a plot: `at` is its place there, 0 … 1000.
    void tick(double x, double y, std::string_view text, std::string_view style, double at);
    /// What follows until `end_plot` is drawn in a box of its own: 1000 wide and `height` high there, of which a script
    /// may show a part.
    void begin_plot(double x, double y, double width, double height);
    void end_plot();
    /// Styles and what they mean, in rows from (x, y) on, as far to the right as the picture goes; makes the picture as
    /// high as that takes.
    void legend(double x, double y, const std::vector<std::pair<std::string, std::string>>& meanings);

    /// The element, for a page that has `picture_style` and `picture_patterns`.
    [[nodiscard]] std::string in_page() const;
    /// A file of its own.
    [[nodiscard]] std::string alone() const;

private:
    [[nodiscard]] std::string head() const;

    double width_, height_;
    std::string about_, body_;
};

/// The classes that pictures use. Kinds of work: k0 … k9; of waiting: w0 … w5, which also have a hatching each (`_w0`
/// over them); shares of the best, light to dark: h0 … h4, and the text on them t0 … t4; frames: f0 … f4.
/// `grid`, `axis`, `mark`, `best`; for texts `mid`, `end`, `small`, and `fine`, which only a script shows.
[[nodiscard]] std::string_view picture_style() noexcept;
/// The hatchings; once in a page.
[[nodiscard]] std::string_view picture_patterns() noexcept;

/// A coordinate as short as it can be: one decimal, if it has any.
[[nodiscard]] std::string coordinate(double);

}   // namespace drawpoint
