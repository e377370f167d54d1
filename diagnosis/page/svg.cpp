#include "diagnosis/page/svg.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include <drawpoint/instrumentation/text/printable.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint {
namespace {

template <class... Values>
void put(std::string& to, fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(to), format, std::forward<Values>(values)...);
}

std::string class_of(std::string_view style) { return style.empty() ? "" : fmt::format(" class=\"{}\"", style); }

/// The end of an element that has nothing inside but a tip.
std::string end_of(std::string_view element, std::string_view tip) {
    return tip.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", printable_markup(tip), element);
}

}   // namespace

std::string coordinate(double value) {
    const double rounded = std::round(value * 10) / 10;
    return rounded == std::round(rounded) ? fmt::format("{:.0f}", rounded + 0.0) : fmt::format("{:.1f}", rounded);
}

Svg::Svg(double width, double height, std::string_view about)
    : width_{width}, height_{height}, about_{printable_markup(about)} {}

void Svg::rect(double x, double y, double width, double height, std::string_view style, std::string_view tip) {
    put(body_, "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}{}", coordinate(x), coordinate(y),
        coordinate(std::max(width, 0.1)), coordinate(std::max(height, 0.1)), class_of(style), end_of("rect", tip));
}

void Svg::circle(double x, double y, double radius, std::string_view style, std::string_view tip) {
    put(body_, "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}{}", coordinate(x), coordinate(y), coordinate(radius),
        class_of(style), end_of("circle", tip));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style) {
    put(body_, "<path d=\"M{} {}L{} {}\"{}/>\n", coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2),
        class_of(style));
}

void Svg::path(std::string_view shape, std::string_view style, std::string_view tip) {
    put(body_, "<path d=\"{}\"{}{}", shape, class_of(style), end_of("path", tip));
}

void Svg::text(double x, double y, std::string_view text, std::string_view style) {
    put(body_, "<text x=\"{}\" y=\"{}\"{}>{}</text>\n", coordinate(x), coordinate(y), class_of(style),
        printable_markup(text));
}

void Svg::tick(double x, double y, std::string_view text, std::string_view style, double at) {
    put(body_, "<text x=\"{}\" y=\"{}\" class=\"tick {}\" data-at=\"{}\">{}</text>\n", coordinate(x), coordinate(y),
        style, coordinate(at), printable_markup(text));
}

void Svg::begin_plot(double x, double y, double width, double height) {
    put(body_,
        "<svg class=\"plot\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" viewBox=\"0 0 1000 {}\" "
        "preserveAspectRatio=\"none\">\n",
        coordinate(x), coordinate(y), coordinate(width), coordinate(height), coordinate(height));
}

void Svg::end_plot() { body_ += "</svg>\n"; }

void Svg::legend(double x, double y, const std::vector<std::pair<std::string, std::string>>& meanings) {
    constexpr double row = 20, letter = 7.2, sign = 14, gap = 24;
    double at = x;
    for (const auto& [style, meaning] : meanings) {
        const double length = sign + 6 + letter * static_cast<double>(columns_of(meaning));
        if (at > x && at + length > width_) {
            at = x;
            y += row;
        }
        rect(at, y - 11, sign, 13, style);
        if (style.starts_with('w'))
            rect(at, y - 11, sign, 13, "_" + style.substr(0, 2));
        text(at + sign + 6, y, meaning);
        at += length + gap;
    }
    height_ = std::max(height_, y + 8);
}

std::string Svg::head() const {
    return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
                       "role=\"img\" aria-label=\"{2}\">\n",
                       coordinate(width_), coordinate(height_), about_);
}

std::string Svg::in_page() const { return head() + body_ + "</svg>\n"; }

std::string Svg::alone() const {
    return fmt::format("{}<style>{}</style>\n{}<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n{}</svg>\n",
                       head(), picture_style(), picture_patterns(), body_);
}

std::string_view picture_style() noexcept {
    return R"(
:root{--bg:#fff;--fg:#1b1f24;--dim:#57606a;--grid:#d0d7de;--bad:#a40e26;--k0:#0072b2;--k1:#56b4e9;--k2:#009e73;
--k3:#8c6bb1;--k4:#7f7f7f;--k5:#a6761d;--k6:#1f4e79;--k7:#66a182;--k8:#b3b3b3;--k9:#444;--w0:#d55e00;--w1:#e69f00;
--w2:#cc79a7;--w3:#8b1a1a;--w4:#999933;--w5:#b9a67c;--h0:#e4edf5;--h1:#b9d2e8;--h2:#84b0d6;--h3:#2f6ea8;--h4:#0b4a82;
--f0:#ffd9b0;--f1:#ffe6a8;--f2:#f9cfc4;--f3:#e6e2b3;--f4:#fcdccf}
@media screen and (prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e9ec;--dim:#a9b1ba;--grid:#3b434b;--bad:#ff8f9c;
--k0:#3d9bd6;--k6:#7aa7d9;--k9:#c2c2c2;--w3:#ff8a80;--h0:#1d2a36;--h1:#23415c;--h2:#2c618f;--h3:#86bbe8;--h4:#b9dcf8;
--f0:#6b3f14;--f1:#5f4a12;--f2:#6a2f24;--f3:#4c4a1c;--f4:#5c372b}}
svg text{font:13px system-ui,sans-serif;fill:var(--fg)}
svg .mid{text-anchor:middle}svg .end{text-anchor:end}svg .small{font-size:11px}
svg .paper{fill:var(--bg)}
svg .axis{fill:none;stroke:var(--dim)}svg .grid{fill:none;stroke:var(--grid)}
svg .mark{fill:none;stroke:var(--fg);stroke-dasharray:4 3}svg .bad{fill:var(--bad)}
svg .best{fill:none;stroke:var(--bad);stroke-width:3}
svg .k0{fill:var(--k0)}svg .k1{fill:var(--k1)}svg .k2{fill:var(--k2)}svg .k3{fill:var(--k3)}svg .k4{fill:var(--k4)}
svg .k5{fill:var(--k5)}svg .k6{fill:var(--k6)}svg .k7{fill:var(--k7)}svg .k8{fill:var(--k8)}svg .k9{fill:var(--k9)}
svg .w0{fill:var(--w0)}svg .w1{fill:var(--w1)}svg .w2{fill:var(--w2)}svg .w3{fill:var(--w3)}svg .w4{fill:var(--w4)}
svg .w5{fill:var(--w5)}svg .half{opacity:.45}
svg ._w0{fill:url(#hatch0)}svg ._w1{fill:url(#hatch1)}svg ._w2{fill:url(#hatch2)}svg ._w3{fill:url(#hatch3)}
svg ._w4{fill:url(#hatch4)}svg ._w5{fill:url(#hatch5)}
svg .h0{fill:var(--h0)}svg .h1{fill:var(--h1)}svg .h2{fill:var(--h2)}svg .h3{fill:var(--h3)}svg .h4{fill:var(--h4)}
svg .fine{display:none}svg .t3,svg .t4{fill:var(--bg)}
svg .f0{fill:var(--f0)}svg .f1{fill:var(--f1)}svg .f2{fill:var(--f2)}svg .f3{fill:var(--f3)}svg .f4{fill:var(--f4)}
)";
}

std::string_view picture_patterns() noexcept {
    return R"(<defs><g stroke="#fff" stroke-opacity=".55" fill="none">
<pattern id="hatch0" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6L6 0"/></pattern>
<pattern id="hatch1" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 0L6 6"/></pattern>
<pattern id="hatch2" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 3H6"/></pattern>
<pattern id="hatch3" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M3 0V6"/></pattern>
<pattern id="hatch4" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6L6 0M0 0L6 6"/></pattern>
<pattern id="hatch5" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 3H6M3 0V6"/></pattern>
</g></defs>
)";
}

}   // namespace drawpoint
