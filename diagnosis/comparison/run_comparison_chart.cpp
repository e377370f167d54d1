#include <drawpoint/diagnosis/comparison/run_comparison.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "diagnosis/comparison/row_texts.hpp"
#include "diagnosis/comparison/signed_duration.hpp"
#include "diagnosis/page/page.hpp"
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint {
namespace {

constexpr std::size_t most_rows = 14;
constexpr double left = 310, right = 110, bars = 560, row_height = 26, top = 8;

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
    std::vector<Bar> all{{"before", format_duration(before), 0, before, "k4"}};
    double at = before;
    const auto step = [&](std::string name, double ns) {
        all.push_back({std::move(name), signed_duration(ns), at, at + ns * 1e-9, ns > 0 ? "w0" : "k2"});
        at = all.back().to;
    };
    const std::size_t shown = std::min(found.rows.size(), most_rows);
    for (const WaterfallRow& row : std::span{found.rows}.first(shown))
        step(name_of(row), static_cast<double>(row.difference_ns));
    if (shown < found.rows.size())
        step(fmt::format("{} others", found.rows.size() - shown), (after - at) * 1e9);
    all.push_back({"after", format_duration(after), 0, after, "k4"});
    return all;
}

/// Bars from the first wall time to the second: each begins where the one above it ends.
Svg waterfall(const RunComparison& found) {
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
    Svg svg{
        left + bars + right, top + row_height * static_cast<double>(all.size()) + 24,
        fmt::format("From {} before to {} after, by what made the difference.", all.front().value, all.back().value)};
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Bar& bar = all[i];
        const double x = std::min(place(bar.from), place(bar.to)), end = std::max(place(bar.from), place(bar.to));
        const double y = top + row_height * static_cast<double>(i);
        svg.text(left - 8, y + 17, cut(bar.name, 42), "end");
        svg.rect(x, y + 3, std::max(end - x, 1.0), row_height - 6, bar.style, bar.name + ": " + bar.value);
        svg.text(end + 6, y + 17, bar.value);
        if (i + 1 < all.size())
            svg.line(place(bar.to), y + 3, place(bar.to), y + 2 * row_height - 3, "mark");
    }
    svg.text(left, top + row_height * static_cast<double>(all.size()) + 18, "from " + format_duration(begin));
    return svg;
}

}   // namespace

std::string to_svg(const RunComparison& found) { return waterfall(found).alone(); }

std::string to_html(const RunComparison& found, std::string_view title, std::string_view more) {
    std::string body = paragraph_of(headline(found));
    if (!found.differences.empty()) {
        PageTable table{.caption = "Not the same", .titles = {"what", "before", "after"}, .rows = {}};
        for (const RunDifference& one : found.differences)
            table.rows.push_back({one.name, one.a, one.b});
        body += element_of(table);
    }
    body += figure_of(waterfall(found), "From the first wall time to the second.");
    PageTable table{.caption = "All differences",
                    .titles = {"phase", "what", "before", "after", "difference", "of all", "90 % interval"},
                    .rows = {}};
    const auto seconds = [](std::int64_t ns, std::string text) {
        return PageCell{std::optional{static_cast<double>(ns) * 1e-9}, std::move(text)};
    };
    for (const WaterfallRow& row : found.rows)
        table.rows.push_back({row.phase, row.name,
                              seconds(row.a_ns, format_duration(static_cast<double>(row.a_ns) * 1e-9)),
                              seconds(row.b_ns, format_duration(static_cast<double>(row.b_ns) * 1e-9)),
                              seconds(row.difference_ns, signed_duration(static_cast<double>(row.difference_ns))),
                              share_text(found, row), interval_text(row)});
    body += element_of(table);
    body += "<pre>";
    for (std::size_t at = 0; at < more.size();) {   // line by line: a line break is no control character here
        const std::size_t end = std::min(more.find('\n', at), more.size());
        body += printable_markup(more.substr(at, end - at)) + "\n";
        at = end + 1;
    }
    body += "</pre>\n" + paragraph_of("One run of each says nothing about chance between runs; drawpoint gate does.");
    return page_of(title, body);
}

}   // namespace drawpoint
