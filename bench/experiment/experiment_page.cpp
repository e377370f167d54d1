#include "bench/experiment/experiment_page.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <drawpoint/bench/experiment/experiment_report.hpp>
#include <drawpoint/instrumentation/statistics.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

#include "bench/experiment/rows.hpp"
#include "bench/experiment/turn_json.hpp"
#include "diagnosis/page/page.hpp"

namespace drawpoint::bench {
namespace {

/// A row for each comparison: its ratio and bounds, on an axis of factors around 1.
Svg ratios_chart(const Measurements& measured, std::span<const Comparison> comparisons) {
    constexpr double left = 330, bars = 480, right = 170, row_height = 26, top = 8;
    double widest = 1.02;   // the axis goes from 1 / widest to widest
    for (const Comparison& one : comparisons)
        for (const double ratio : {one.ratio.median, one.ratio.low, one.ratio.high})
            if (std::isfinite(ratio) && ratio > 0)
                widest = std::max({widest, ratio, 1 / ratio});
    widest = std::min(widest, 100.0);
    const auto place = [&](double ratio) {
        const double at = std::log(std::max(ratio, 1e-9)) / std::log(widest);
        return left + bars * (std::clamp(at, -1.0, 1.0) + 1) / 2;
    };
    const double bottom = top + row_height * static_cast<double>(comparisons.size());
    Svg svg{
        left + bars + right, bottom + 30,
        fmt::format("{} ratios to {}, with their bounds.", comparisons.size(), printable(measured.contenders.front()))};
    svg.line(place(1), top, place(1), bottom, "mark");
    for (std::size_t i = 0; i < comparisons.size(); ++i) {
        const Comparison& one = comparisons[i];
        const double y = top + row_height * static_cast<double>(i);
        const std::string name =
            printable(measured.contenders[one.contender]) + ", " + printable(measured.metrics[one.metric].name);
        const char* const style = one.finding == Finding::slower ? "w0" : one.finding == Finding::faster ? "k2" : "k4";
        svg.text(left - 8, y + 17, cut(name, 44), "end");
        const double low = place(one.ratio.low > 0 ? one.ratio.low : 1 / widest),
                     high = place(std::isfinite(one.ratio.high) ? one.ratio.high : widest);
        const std::string tip = fmt::format("{}: {}", name, to_text(one));
        svg.rect(low, y + 10, std::max(high - low, 1.0), row_height - 20, style, tip);
        svg.circle(place(one.ratio.median), y + row_height / 2, 5, style, tip);
        svg.text(left + bars + 8, y + 17, ratio_text(one.ratio));
    }
    svg.line(left, bottom, left + bars, bottom, "axis");
    for (const double ratio : {1 / widest, 1.0, widest})
        svg.text(place(ratio), bottom + 20, fmt::format("{:.3g}", ratio), "mid");
    svg.legend(left, bottom + 40, {{"k2", "faster"}, {"w0", "slower"}, {"k4", "no difference shown"}});
    return svg;
}

}   // namespace

std::string experiment_page(const Measurements& measured, std::span<const Comparison> comparisons) {
    std::string body;
    if (const std::string reason = unfit(measured); !reason.empty())
        body += paragraph_of(
            fmt::format("{}: {}", measured.failure.empty() ? "No place to measure" : "No verdict", reason), "bad");
    for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender) {
        if (!measured.not_run[contender].empty())
            body += paragraph_of("Not run: " + measured.not_run[contender], "bad");
        for (const Part& part : measured.parts[contender])
            if (!part.not_run.empty())
                body += paragraph_of(
                    fmt::format("Not run: row {} of {}: {}", part.name, measured.contenders[contender], part.not_run),
                    "bad");
        for (const std::string& sentence : differing_parts(measured, contender))
            body += paragraph_of(sentence, "bad");
    }
    if (!comparisons.empty())
        body += figure_of(ratios_chart(measured, comparisons),
                          fmt::format("Ratios to {}. All bounds hold together.", measured.contenders.front()));
    PageTable table{.caption = "Medians of the rounds",
                    .titles = {"metric", "contender", "median", "ratio", "low", "high", "finding"},
                    .rows = {}};
    const auto bound = [](double value) {
        return PageCell{std::isfinite(value) && value > 0 ? std::optional{value} : std::nullopt,
                        fmt::format("{:.3f}", value)};
    };
    for (std::size_t metric = 0; metric < measured.metrics.size(); ++metric)
        for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender) {
            if (!has_value(measured, contender, metric))
                continue;
            const double median = statistics::quantile(measured.values(contender, metric), 0.5);
            const Comparison* const one = find(comparisons, contender, metric);
            const Interval ratio = one ? one->ratio : Interval{.median = -1, .low = -1, .high = -1};
            table.rows.push_back({measured.metrics[metric].name, measured.contenders[contender],
                                  PageCell{std::optional{median}, value_text(median, measured.metrics[metric].unit)},
                                  bound(ratio.median), bound(ratio.low), bound(ratio.high), one ? to_text(*one) : ""});
        }
    body += element_of(table);
    body += paragraph_of(fmt::format("{} rounds in {}, in an order drawn anew each round.", measured.rounds.size(),
                                     format_duration(measured.seconds())));
    for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender)
        body += paragraph_of(fmt::format("{}: {}", measured.contenders[contender], measured.descriptions[contender]),
                             "dim");
    return page_of("A comparison in rounds", body);
}

}   // namespace drawpoint::bench
