#include "diagnosis/whatif/whatif_chart.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include <drawpoint/instrumentation/text/format.hpp>

#include "diagnosis/page/page.hpp"

namespace drawpoint {
namespace {

std::size_t place(const std::vector<std::size_t>& sorted, std::size_t value) {
    return static_cast<std::size_t>(std::ranges::lower_bound(sorted, value) - sorted.begin());
}

template <class Number>
std::vector<std::size_t> values_of(const Whatif& found, Number number) {
    std::vector<std::size_t> values;
    for (const WhatifRow& row : found.rows)
        values.push_back(std::invoke(number, row.setting));
    std::ranges::sort(values);
    const auto twice = std::ranges::unique(values);
    values.erase(twice.begin(), twice.end());
    return values;
}

std::string about(const WhatifRow& row) {
    const Prediction& expected = row.prediction;
    return fmt::format(
        "{:.4g} batches/s ({:.4g} … {:.4g}), waiting for data {:.1f} % of the time, slowest draws {}, {} of memory",
        expected.batches_per_s.median, expected.batches_per_s.low, expected.batches_per_s.high,
        expected.draw_share.median * 100, format_duration(expected.p99_draw_s.median),
        format_bytes(static_cast<double>(expected.peak_bytes)));
}

std::string name_of(const LoaderSetting& setting) {
    return fmt::format("num_workers {}, {} {}, order {}, batch_size {}", setting.num_workers,
                       prefetch_name(setting.kind), prefetch_of(setting), to_string(setting.order), setting.batch_size);
}

/// Speed against memory: what more memory buys.
Svg memory_chart(const Whatif& found) {
    constexpr double left = 80, width = 840, top = 14, height = 230;
    double most_bytes = 1, most_rate = 1e-12;
    for (const WhatifRow& row : found.rows) {
        most_bytes = std::max(most_bytes, static_cast<double>(row.prediction.peak_bytes));
        most_rate = std::max(most_rate, row.samples_per_s);
    }
    const WhatifRow& chosen = found.rows[found.recommended];
    Svg svg{960, 310,
            fmt::format("Samples per second against memory, a dot for each of {} settings; recommended: {}.",
                        found.rows.size(), name_of(chosen.setting))};
    svg.line(left, top, left, top + height, "axis");
    svg.line(left, top + height, left + width, top + height, "axis");
    svg.text(left - 6, top + height + 4, "0", "end");
    svg.text(left - 6, top + 10, fmt::format("{:.4g}", most_rate), "end");
    svg.text(left - 6, top + 26, "samples/s", "end small");
    svg.text(left + width, top + height + 18, format_bytes(most_bytes) + " of memory", "end");
    const auto x = [&](const WhatifRow& row) {
        return left + (width - 12) * static_cast<double>(row.prediction.peak_bytes) / most_bytes;
    };
    const auto y = [&](const WhatifRow& row) { return top + height - (height - 10) * row.samples_per_s / most_rate; };
    for (const WhatifRow& row : found.rows)
        svg.circle(x(row), y(row), row.on_frontier ? 5 : 4, row.on_frontier ? "k0" : "k8",
                   name_of(row.setting) + ": " + about(row));
    svg.circle(x(chosen), y(chosen), 9, "best", "recommended");
    svg.legend(left, top + height + 44,
               {{"k0", "none is as fast with as few workers and as little memory"},
                {"k8", "others"},
                {"best", "recommended"}});
    return svg;
}

PageTable table_of(const Whatif& found) {
    PageTable table{.caption = "All settings",
                    .titles = {"num_workers", std::string{prefetch_name(found.recorded.kind)}, "order", "batch_size",
                               "batches/s", "low", "high", "draw", "p99 draw", "memory", "note"},
                    .rows = {},
                    .bold_row = found.recommended};
    const auto number = [](double value, std::string text) { return PageCell{std::optional{value}, std::move(text)}; };
    const auto whole = [&](std::size_t value) { return number(static_cast<double>(value), fmt::format("{}", value)); };
    for (const WhatifRow& row : found.rows) {
        const Prediction& expected = row.prediction;
        const auto rate = [&](double value) { return number(value, fmt::format("{:.4g}", value)); };
        table.rows.push_back(
            {whole(row.setting.num_workers), whole(prefetch_of(row.setting)), to_string(row.setting.order),
             whole(row.setting.batch_size), rate(expected.batches_per_s.median), rate(expected.batches_per_s.low),
             rate(expected.batches_per_s.high),
             number(expected.draw_share.median, fmt::format("{:.1f} %", expected.draw_share.median * 100)),
             number(expected.p99_draw_s.median, format_duration(expected.p99_draw_s.median)),
             number(static_cast<double>(expected.peak_bytes), format_bytes(static_cast<double>(expected.peak_bytes))),
             fmt::format("{}{}{}", row.recorded ? "recorded " : "",
                         &row == &found.rows[found.recommended] ? "recommended " : "",
                         row.on_frontier ? "frontier" : "")});
    }
    return table;
}

}   // namespace

Svg whatif_map(const Whatif& found, const WhatifRow& of) {
    constexpr double left = 120, top = 46, cell_height = 34;
    const auto workers = values_of(found, &LoaderSetting::num_workers);
    const auto depths = values_of(found, prefetch_of);
    const double cell_width = std::clamp(830 / static_cast<double>(depths.size()), 46.0, 110.0);
    const double most = std::max(found.rows[found.best].samples_per_s, 1e-12);
    Svg svg{std::max(left + cell_width * static_cast<double>(depths.size()) + 10, 960.0),
            top + cell_height * static_cast<double>(workers.size()) + 10,
            fmt::format("Predicted batches per second by num_workers and {}, order {}, batch_size {}.",
                        prefetch_name(of.setting.kind), to_string(of.setting.order), of.setting.batch_size)};
    svg.text(left, 16, std::string{prefetch_name(found.recorded.kind)});
    svg.text(left - 10, 36, "num_workers", "end");
    for (std::size_t i = 0; i < depths.size(); ++i)
        svg.text(left + cell_width * (static_cast<double>(i) + 0.5), 36, fmt::format("{}", depths[i]), "mid");
    for (std::size_t i = 0; i < workers.size(); ++i)
        svg.text(left - 10, top + cell_height * (static_cast<double>(i) + 0.65), fmt::format("{}", workers[i]), "end");
    for (const WhatifRow& row : found.rows) {
        if (row.setting.order != of.setting.order || row.setting.batch_size != of.setting.batch_size)
            continue;
        const double x = left + cell_width * static_cast<double>(place(depths, prefetch_of(row.setting)));
        const double y = top + cell_height * static_cast<double>(place(workers, row.setting.num_workers));
        const double share = std::clamp(row.samples_per_s / most, 0.0, 1.0);
        const int shade = share > 0.97 ? 4 : share > 0.88 ? 3 : share > 0.75 ? 2 : share > 0.5 ? 1 : 0;
        svg.rect(x + 1, y + 1, cell_width - 2, cell_height - 2, fmt::format("h{}", shade), about(row));
        if (&row == &found.rows[found.recommended])
            svg.rect(x + 2, y + 2, cell_width - 4, cell_height - 4, "best", "recommended: " + about(row));
        svg.text(x + cell_width / 2, y + cell_height * 0.65,
                 fmt::format("{:.4g}{}", row.prediction.batches_per_s.median, row.recorded ? " *" : ""),
                 fmt::format("mid t{}", shade));
    }
    return svg;
}

std::string whatif_body(const Whatif& found) {
    const WhatifRow& chosen = found.rows[found.recommended];
    std::string html = paragraph_of(fmt::format(
        "Recorded: num_workers {}, prefetch_depth {}, order {}: {:.4g} batches/s (simulating the same setting gives "
        "{:.4g}, {:.4g} … {:.4g}).",
        found.recorded.num_workers, found.recorded.prefetch_depth, to_string(found.recorded.order),
        found.recorded_batches_per_s, found.as_recorded.batches_per_s.median, found.as_recorded.batches_per_s.low,
        found.as_recorded.batches_per_s.high));
    html += paragraph_of(
        fmt::format("Recommended, the cheapest (fewest workers, then least memory) within 2 % of the best: {}: {}.{}",
                    name_of(chosen.setting), about(chosen),
                    found.on_edge ? " It is the largest that was asked for: a larger one may be better." : ""));
    const WhatifRow* last = nullptr;
    for (const WhatifRow& row : found.rows) {
        if (!last || last->setting.order != row.setting.order || last->setting.batch_size != row.setting.batch_size)
            html +=
                figure_of(whatif_map(found, row),
                          fmt::format("Batches per second, order {}, batch_size {}. Framed: recommended; *: recorded.",
                                      to_string(row.setting.order), row.setting.batch_size));
        last = &row;
    }
    html += figure_of(memory_chart(found), "Speed and memory.");
    return html + element_of(table_of(found));
}

}   // namespace drawpoint
