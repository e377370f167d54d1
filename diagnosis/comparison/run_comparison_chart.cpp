#include <drawpoint/diagnosis/comparison/run_comparison.hpp>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "diagnosis/comparison/row_texts.hpp"
#include "diagnosis/comparison/signed_duration.hpp"
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {
namespace {

constexpr std::size_t most_rows = 14;
constexpr double left = 250, right = 110, bars = 560, row_height = 26, top = 8;

template <class... Values>
void put(std::string& text, fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Values>(values)...);
}

/// A bar of the waterfall, in seconds.
struct Bar {
    std::string name, value;
    double from = 0, to = 0;
    const char* style = "";
};

std::string name_of(const WaterfallRow& row) { return fmt::format("{} {}", row.phase, row.name); }

std::vector<Bar> bars_of(const RunComparison& found) {
    const double before = static_cast<double>(found.a_wall_ns) * 1e-9;
    const double after = static_cast<double>(found.b_wall_ns) * 1e-9;
    std::vector<Bar> all{{"before", format_duration(before), 0, before, "w"}};
    double at = before;
    const auto step = [&](std::string name, double ns) {
        all.push_back({std::move(name), signed_duration(ns), at, at + ns * 1e-9, ns > 0 ? "l" : "s"});
        at = all.back().to;
    };
    const std::size_t shown = std::min(found.rows.size(), most_rows);
    for (const WaterfallRow& row : std::span{found.rows}.first(shown))
        step(name_of(row), static_cast<double>(row.difference_ns));
    if (shown < found.rows.size())
        step(fmt::format("{} others", found.rows.size() - shown), (after - at) * 1e9);
    all.push_back({"after", format_duration(after), 0, after, "w"});
    return all;
}

}   // namespace

std::string to_svg(const RunComparison& found) {
    const std::vector<Bar> all = bars_of(found);
    double least = all.front().to, most = least;
    for (const Bar& bar : all) {
        least = std::min(least, bar.to);
        most = std::max(most, bar.to);
    }
    // Small differences of long runs are drawn from a later time on.
    const double begin = least > 0.5 * most ? std::max(least - 0.3 * (most - least), 0.0) : 0.0;
    const double length = std::max(most - begin, 1e-12);
    const auto place = [&](double s) { return left + bars * std::clamp((s - begin) / length, 0.0, 1.0); };
    const double height = top + row_height * static_cast<double>(all.size()) + 24;
    std::string svg;
    put(svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" role=\"img\">\n<style>text{{font:13px system-ui,sans-serif}}.e{{text-anchor:end}}.w{{fill:#8a96a3}}"
        ".l{{fill:#d62728}}.s{{fill:#2ca02c}}.n{{stroke:#888;stroke-dasharray:3}}</style>\n",
        left + bars + right, height);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Bar& bar = all[i];
        const double x = std::min(place(bar.from), place(bar.to)), end = std::max(place(bar.from), place(bar.to));
        const double y = top + row_height * static_cast<double>(i);
        put(svg,
            "<g><title>{0}: {1}</title><text class=\"e\" x=\"{2:.0f}\" y=\"{3:.0f}\">{0}</text><rect class=\"{4}\" "
            "x=\"{5:.1f}\" y=\"{6:.0f}\" width=\"{7:.1f}\" height=\"{8:.0f}\"/><text x=\"{9:.1f}\" "
            "y=\"{3:.0f}\">{1}</text></g>\n",
            printable_markup(bar.name), bar.value, left - 8, y + 17, bar.style, x, y + 3, std::max(end - x, 1.0),
            row_height - 6, end + 6);
        if (i + 1 < all.size())
            put(svg, "<line class=\"n\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\"/>\n", place(bar.to),
                y + 3, y + row_height + row_height - 3);
    }
    put(svg, "<text x=\"{:.0f}\" y=\"{:.0f}\">from {}</text></svg>\n", left, height - 6, format_duration(begin));
    return svg;
}

std::string to_html(const RunComparison& found, std::string_view title, std::string_view more) {
    std::string html;
    put(html,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n<style>body{{font:15px "
        "system-ui,sans-serif;margin:2em;max-width:70em}}table{{border-collapse:collapse}}td,th{{padding:2px 10px;"
        "text-align:right}}td.t,th.t{{text-align:left}}</style></head><body>\n<h1>{0}</h1>\n<p>{1}</p>\n",
        printable_markup(title), printable_markup(headline(found)));
    if (!found.differences.empty())
        html += "<table><tr><th class=\"t\">not the same<th class=\"t\">before<th class=\"t\">after</tr>\n";
    for (const RunDifference& one : found.differences)
        put(html, "<tr><td class=\"t\">{}<td class=\"t\">{}<td class=\"t\">{}</tr>\n", printable_markup(one.name),
            printable_markup(one.a), printable_markup(one.b));
    html += found.differences.empty() ? "" : "</table>\n";
    html += to_svg(found);
    html += "<table><tr><th class=\"t\">phase<th class=\"t\">what<th>before<th>after<th>difference<th>of all<th>90 % "
            "interval</tr>\n";
    for (const WaterfallRow& row : found.rows)
        put(html, "<tr><td class=\"t\">{}<td class=\"t\">{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>\n", row.phase,
            printable_markup(row.name), format_duration(static_cast<double>(row.a_ns) * 1e-9),
            format_duration(static_cast<double>(row.b_ns) * 1e-9),
            signed_duration(static_cast<double>(row.difference_ns)), share_text(found, row), interval_text(row));
    html += "</table>\n<pre>";
    for (std::size_t at = 0; at < more.size();) {   // line by line: a line break is no control character here
        const std::size_t end = std::min(more.find('\n', at), more.size());
        html += printable_markup(more.substr(at, end - at)) + "\n";
        at = end + 1;
    }
    return html + "</pre>\n<p>One run of each says nothing about chance between runs; drawpoint gate does.</p>\n"
                  "</body></html>\n";
}

}   // namespace drawpoint
