#include <drawpoint/diagnosis/whatif/whatif_report.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {
namespace {

constexpr double cell_width = 92, cell_height = 34, left = 90, top = 44;

template <class... Values>
void put(std::string& html, fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(html), format, std::forward<Values>(values)...);
}

/// From light to dark by the `share` of the best; a half or less is the lightest.
std::string colour_of(double share) {
    const double t = std::clamp((share - 0.5) * 2, 0.0, 1.0);
    const auto mix = [&](double from, double to) { return static_cast<int>(std::lround(from + (to - from) * t)); };
    return fmt::format("rgb({},{},{})", mix(240, 33), mix(244, 113), mix(248, 181));
}

std::size_t place(const std::vector<std::size_t>& sorted, std::size_t value) {
    return static_cast<std::size_t>(std::ranges::lower_bound(sorted, value) - sorted.begin());
}

std::vector<std::size_t> values_of(const Whatif& found, std::size_t LoaderSetting::* number) {
    std::vector<std::size_t> values;
    for (const WhatifRow& row : found.rows)
        values.push_back(row.setting.*number);
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

/// Batches per second by workers (down) and depth (across), for one order and batch size.
void put_heat_map(std::string& html, const Whatif& found, const WhatifRow& of) {
    const auto workers = values_of(found, &LoaderSetting::num_workers);
    const auto depths = values_of(found, &LoaderSetting::prefetch_depth);
    const double most = std::max(found.rows[found.best].samples_per_s, 1e-12);
    put(html, "<h2>order {}, batch_size {}</h2>\n", to_string(of.setting.order), of.setting.batch_size);
    put(html, "<svg width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\">\n",
        left + cell_width * static_cast<double>(depths.size()) + 8,
        top + cell_height * static_cast<double>(workers.size()) + 8);
    put(html, "<text x=\"{}\" y=\"16\">prefetch_depth</text><text x=\"4\" y=\"36\">num_workers</text>\n", left);
    for (std::size_t i = 0; i < depths.size(); ++i)
        put(html, "<text class=\"m\" x=\"{:.0f}\" y=\"36\">{}</text>\n",
            left + cell_width * (static_cast<double>(i) + 0.5), depths[i]);
    for (std::size_t i = 0; i < workers.size(); ++i)
        put(html, "<text class=\"e\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", left - 10,
            top + cell_height * (static_cast<double>(i) + 0.65), workers[i]);
    for (const WhatifRow& row : found.rows) {
        if (row.setting.order != of.setting.order || row.setting.batch_size != of.setting.batch_size)
            continue;
        const double x = left + cell_width * static_cast<double>(place(depths, row.setting.prefetch_depth));
        const double y = top + cell_height * static_cast<double>(place(workers, row.setting.num_workers));
        const double share = row.samples_per_s / most;
        const bool chosen = &row == &found.rows[found.recommended];
        put(html,
            "<g><title>{}</title><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"{}\" "
            "class=\"{}\"/><text class=\"m{}\" x=\"{:.0f}\" y=\"{:.0f}\">{:.4g}{}</text></g>\n",
            about(row), x + 1, y + 1, cell_width - 2, cell_height - 2, colour_of(share), chosen ? "r" : "c",
            share > 0.8 ? " w" : "", x + cell_width / 2, y + cell_height * 0.65, row.prediction.batches_per_s.median,
            row.recorded ? " *" : "");
    }
    html += "</svg>\n";
}

/// Speed against memory: what more memory buys.
void put_frontier(std::string& html, const Whatif& found) {
    constexpr double width = 640, height = 300, margin = 56;
    double most_bytes = 1, most_rate = 1e-12;
    for (const WhatifRow& row : found.rows) {
        most_bytes = std::max(most_bytes, static_cast<double>(row.prediction.peak_bytes));
        most_rate = std::max(most_rate, row.samples_per_s);
    }
    put(html,
        "<h2>Speed and memory</h2>\n<svg width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "role=\"img\">\n",
        width, height);
    put(html,
        "<path class=\"a\" d=\"M{0} 10V{1}H{2}\"/><text x=\"{0}\" y=\"{3}\">0</text><text class=\"e\" x=\"{2}\" "
        "y=\"{3}\">{4} of memory</text><text x=\"4\" y=\"24\">{5:.4g}</text><text x=\"4\" y=\"40\">samples/s</text>\n",
        margin, height - 30, width - 10, height - 10, format_bytes(most_bytes), most_rate);
    for (const WhatifRow& row : found.rows) {
        const double x = margin + (width - margin - 20) * static_cast<double>(row.prediction.peak_bytes) / most_bytes;
        const double y = height - 30 - (height - 50) * row.samples_per_s / most_rate;
        const bool chosen = &row == &found.rows[found.recommended];
        put(html,
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"{}\"><title>num_workers {}, prefetch_depth {}, order "
            "{}, batch_size {}: {}</title></circle>\n",
            x, y, chosen ? 7 : 4,
            chosen            ? "r"
            : row.on_frontier ? "f"
                              : "o",
            row.setting.num_workers, row.setting.prefetch_depth, to_string(row.setting.order), row.setting.batch_size,
            about(row));
    }
    html += "</svg>\n";
}

void put_table(std::string& html, const Whatif& found) {
    html +=
        "<h2>All settings</h2>\n<table><tr><th>num_workers<th>prefetch_depth<th>order<th>batch_size<th>batches/s<th>"
        "90 %<th>draw<th>p99 draw<th>memory<th></tr>\n";
    for (const WhatifRow& row : found.rows) {
        const Prediction& expected = row.prediction;
        put(html,
            "<tr{}><td>{}<td>{}<td>{}<td>{}<td>{:.4g}<td>{:.4g} … {:.4g}<td>{:.1f} %<td>{}<td>{}<td>{}{}{}</tr>\n",
            &row == &found.rows[found.recommended] ? " class=\"r\"" : "", row.setting.num_workers,
            row.setting.prefetch_depth, to_string(row.setting.order), row.setting.batch_size,
            expected.batches_per_s.median, expected.batches_per_s.low, expected.batches_per_s.high,
            expected.draw_share.median * 100, format_duration(expected.p99_draw_s.median),
            format_bytes(static_cast<double>(expected.peak_bytes)), row.recorded ? "recorded " : "",
            &row == &found.rows[found.recommended] ? "recommended " : "", row.on_frontier ? "frontier" : "");
    }
    html += "</table>\n";
}

}   // namespace

std::string to_html(const Whatif& found, std::string_view title) {
    const WhatifRow& chosen = found.rows[found.recommended];
    std::string html = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n<style>body{{font:15px "
        "system-ui,sans-serif;margin:2em;max-width:70em}}svg text{{font-size:13px}}.m{{text-anchor:middle}}.e{{text-"
        "anchor:end}}.w{{fill:#fff}}rect.r{{stroke:#d62728;stroke-width:3}}.a{{fill:none;stroke:#888}}circle.r{{fill:"
        "#d62728}}circle.f{{fill:#2171b5}}circle.o{{fill:#c0c8d0}}table{{border-collapse:collapse}}td,th{{padding:2px "
        "10px;text-align:right}}tr.r{{font-weight:bold}}p.d{{color:#b00020}}</style></head><body>\n<h1>{0}</h1>\n",
        printable_markup(title));
    put(html,
        "<p>Recorded: num_workers {}, prefetch_depth {}, order {}: {:.4g} batches/s (simulating the same setting "
        "gives {:.4g}, {:.4g} … {:.4g}).</p>\n",
        found.recorded.num_workers, found.recorded.prefetch_depth, to_string(found.recorded.order),
        found.recorded_batches_per_s, found.as_recorded.batches_per_s.median, found.as_recorded.batches_per_s.low,
        found.as_recorded.batches_per_s.high);
    put(html,
        "<p>Recommended, the cheapest (fewest workers, then least memory) within 2 % of the best: <b>num_workers {}, "
        "prefetch_depth {}, order {}, batch_size {}</b>: {}.{}</p>\n",
        chosen.setting.num_workers, chosen.setting.prefetch_depth, to_string(chosen.setting.order),
        chosen.setting.batch_size, about(chosen),
        found.on_edge ? " It is the largest that was asked for: a larger one may be better." : "");
    for (const Doubt& doubt : found.trust.reasons)
        put(html, "<p class=\"d\"><b>Not to be trusted</b>: {}.</p>\n", printable_markup(doubt.text));
    const WhatifRow* last = nullptr;
    for (const WhatifRow& row : found.rows) {
        if (!last || last->setting.order != row.setting.order || last->setting.batch_size != row.setting.batch_size)
            put_heat_map(html, found, row);
        last = &row;
    }
    put_frontier(html, found);
    put_table(html, found);
    return html + "<p>* recorded. Red: recommended. Blue dots: none is as fast with as few workers and as little "
                  "memory.</p>\n</body></html>\n";
}

}   // namespace drawpoint
