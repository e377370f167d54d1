#include <drawpoint/instrumentation/report/fastxtend.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <drawpoint/instrumentation/event.hpp>
#include <drawpoint/instrumentation/report/scale_time.hpp>
#include <drawpoint/instrumentation/statistics.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

#include "instrumentation/report/fastxtend_rates.hpp"

namespace drawpoint {
namespace {

using Table = std::vector<std::vector<std::string>>;

std::optional<double> finite(double value) { return std::isfinite(value) ? std::optional{value} : std::nullopt; }

std::string with_thousands(double whole) {
    std::string text = fmt::format("{:.0f}", whole + 0.0);   // no "-0"
    const std::size_t sign = text.front() == '-';
    for (std::size_t place = text.size(); place > sign + 3;)
        text.insert(place -= 3, ",");
    return text;
}

std::string mean_rate(std::span<const double> rates) {
    const double mean = statistics::round_half_even(statistics::mean(rates));
    return std::isfinite(mean) ? with_thousands(mean) : "-";
}

std::string percent(double seconds, std::optional<double> fit) {
    const double share = fit ? seconds / *fit * 100 : NAN;
    return std::isfinite(share) ? fmt::format("{:.0f}%", share) : "-";
}

FastxtendRow make_row(std::string_view phase, std::string_view action, std::span<const double> seconds,
                      std::span<const double> rates, std::optional<double> fit) {
    FastxtendRow row{.phase = std::string{phase}, .action = std::string{action}, .step = std::string{action}};
    row.mean_s = finite(statistics::mean(seconds));
    row.std_dev_s = finite(statistics::population_std_dev(seconds));
    row.calls = seconds.size();
    row.samples_per_second = mean_rate(rates);
    row.total_s = seconds.empty() ? std::nullopt : finite(statistics::sum(seconds));
    row.percent_of_total = row.total_s ? percent(*row.total_s, fit) : "-";
    return row;
}

FastxtendRow pass_row(Action action, std::span<const double> seconds, std::span<const FastxtendBatch> batches,
                      std::optional<double> fit) {
    std::vector<double> rates;
    for (const FastxtendBatch& batch : batches)
        rates.push_back(rate(batch, Action::step, batch.draw + batch.batch));
    return make_row("fit", name_of(action), seconds, rates, fit);
}

FastxtendRow batch_row(ProfileMode mode, Phase phase, Action action, std::span<const FastxtendBatch> batches,
                       std::optional<double> fit) {
    std::vector<double> seconds, rates;
    for (const FastxtendBatch& batch : batches)
        if (const auto taken = duration(batch, action)) {
            seconds.push_back(*taken);
            if (has_rate(mode, action))
                rates.push_back(rate(batch, action, *taken));
        }
    return make_row(name_of(phase), name_of(action), seconds, rates, fit);
}

/// The group of a step in 0.0.19: passes are under "epoch", actions other than the draw under "batch".
std::string old_action(const FastxtendRow& row) {
    if (row.step == "fit" || row.step == "draw")
        return row.step;
    return row.phase == "fit" ? "epoch" : "batch";
}

/// Reproduces the original's integer column (see `FastxtendReport::whole_means`); returns whether it remains one.
bool keep_whole(std::vector<FastxtendRow>& rows, std::optional<double> FastxtendRow::* column) {
    static constexpr double tolerance = 1e-8, int64_end = 0x1p63;
    for (FastxtendRow& row : rows)
        if (auto& value = row.*column) {
            const double whole = std::trunc(*value);
            if (std::abs(*value - whole) > tolerance || std::abs(whole) >= int64_end)
                return false;
            value = whole;
        }
    return true;
}

std::string scaled(std::optional<double> seconds) { return seconds ? scale_time(*seconds) : "-"; }

/// The shortest text that reads back as `value`, as Python writes it: "0.0", "5.315e-06", "209525.99090260244".
std::string shortest(double value) {
    std::string text = fmt::format("{}", value);
    return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

std::string raw(std::optional<double> seconds, bool whole) {
    if (!seconds)
        return "-";
    return whole ? fmt::format("{:.0f}", *seconds + 0.0) : shortest(*seconds);
}

/// One line of the table; the versions differ only in the first columns.
std::vector<std::string> line_of(ProfileMode mode, std::string phase, std::string action, std::string step,
                                 std::initializer_list<std::string> rest) {
    std::vector<std::string> cells{std::move(phase), std::move(action)};
    if (mode == ProfileMode::simple_old)
        cells.push_back(std::move(step));
    cells.insert(cells.end(), rest);
    return cells;
}

/// Characters of UTF-8 text; all of them are one column wide here.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padding(std::string_view text, std::size_t width) { return std::string(width - width_of(text), ' '); }

/// The only column of numbers; all others are text. Each output format treats it differently.
constexpr std::string_view calls_title = "Number of Calls";

std::vector<std::size_t> widths_of(const std::vector<std::string>& titles, const Table& cells,
                                   std::size_t (*title_width)(std::string_view)) {
    std::vector<std::size_t> widths;
    for (std::size_t column = 0; column < titles.size(); ++column) {
        widths.push_back(title_width(titles[column]));
        for (const auto& row : cells)
            widths.back() = std::max(widths.back(), width_of(row[column]));
    }
    return widths;
}

std::string notices(const FastxtendReport& report) {
    std::string text =
        report.first_batch_dropped ? "Batch dropped. train and valid phases show 1 less batch than fit.\n" : "";
    if (report.steps_folded > 0)
        text +=
            fmt::format("{} old steps folded. train and valid phases show the batches kept.\n", report.steps_folded);
    return text;
}

std::string csv_line(const std::vector<std::string>& cells) {
    std::string line;
    for (const std::string& cell : cells) {
        line += &cell == &cells.front() ? "" : ",";
        line += cell.find(',') == cell.npos ? cell : "\"" + cell + "\"";
    }
    return line + "\n";
}

}   // namespace

FastxtendReport fastxtend_report(const FastxtendValues& values, ProfileMode mode, bool drop_first_batch) {
    FastxtendReport report{.mode = mode,
                           .first_batch_dropped = drop_first_batch && mode != ProfileMode::simple_old,
                           .steps_folded = values.steps_folded,
                           .rows = {},
                           .whole_means = true,
                           .whole_std_devs = true};
    auto& rows = report.rows;
    rows.push_back({.phase = "fit",
                    .action = "fit",
                    .step = "fit",
                    .mean_s = 0,
                    .std_dev_s = 0,
                    .calls = 1,
                    .samples_per_second = "-",
                    .total_s = values.fit ? finite(*values.fit) : std::nullopt,
                    .percent_of_total = values.fit ? percent(*values.fit, values.fit) : "-"});
    rows.push_back(pass_row(Action::epoch, values.epoch, {}, values.fit));
    rows.push_back(pass_row(Action::train, values.train, values.train_batches, values.fit));
    rows.push_back(pass_row(Action::valid, values.valid, values.valid_batches, values.fit));
    for (const Phase phase : {Phase::train, Phase::valid}) {
        std::span<const FastxtendBatch> batches = phase == Phase::train ? values.train_batches : values.valid_batches;
        if (report.first_batch_dropped && !batches.empty())
            batches = batches.subspan(1);
        for (const Action action : actions_of(mode, phase))
            rows.push_back(batch_row(mode, phase, action, batches, values.fit));
    }
    if (mode == ProfileMode::simple_old)
        for (FastxtendRow& row : rows)
            row.action = old_action(row);
    report.whole_means = keep_whole(rows, &FastxtendRow::mean_s);
    report.whole_std_devs = keep_whole(rows, &FastxtendRow::std_dev_s);
    return report;
}

std::vector<std::string> column_titles(const FastxtendReport& report) {
    return line_of(report.mode, "Phase", "Action", "Step",
                   {"Mean Duration", "Duration Std Dev", std::string{calls_title}, "Samples/Second", "Total Time",
                    "Percent of Total"});
}

Table formatted_cells(const FastxtendReport& report) {
    Table table;
    std::string phase, action;   // of the previous row; repeated cells stay blank
    for (const FastxtendRow& row : report.rows) {
        const bool same_phase = phase == row.phase, same_action = same_phase && action == row.action;
        phase = row.phase;
        action = row.action;
        table.push_back(line_of(report.mode, same_phase ? "" : phase, same_action || phase == action ? "" : action,
                                row.step == action ? "" : row.step,
                                {scaled(row.mean_s), scaled(row.std_dev_s), std::to_string(row.calls),
                                 row.samples_per_second, scaled(row.total_s), row.percent_of_total}));
    }
    return table;
}

Table raw_cells(const FastxtendReport& report) {
    Table table;
    for (const FastxtendRow& row : report.rows)
        table.push_back(line_of(report.mode, row.phase, row.action, row.step,
                                {raw(row.mean_s, report.whole_means), raw(row.std_dev_s, report.whole_std_devs),
                                 std::to_string(row.calls), row.samples_per_second, raw(row.total_s, false),
                                 row.percent_of_total}));
    return table;
}

std::string to_plain(const FastxtendReport& report, std::optional<std::size_t> width) {
    const auto titles = column_titles(report);
    const Table cells = formatted_cells(report);
    // The column of numbers reserves room for a sign before its title.
    const auto widths =
        widths_of(titles, cells, [](std::string_view title) { return width_of(title) + (title == calls_title); });
    std::string text = report.mode == ProfileMode::simple_old ? "Simple Profiler Results\n" : "\nProfiling Results:\n";
    if (width && std::accumulate(widths.begin(), widths.end(), widths.size() - 1) > *width) {
        TextTable table{.titles = titles, .align = "", .rows = cells};
        for (const std::string_view title : {"Duration Std Dev", "Number of Calls", "Samples/Second", "Mean Duration"})
            table.spare.push_back(static_cast<std::size_t>(std::ranges::find(titles, title) - titles.begin()));
        return text + to_text(table, {.width = *width}) + fitted(notices(report), *width);
    }
    const auto add_line = [&](const std::vector<std::string>& line) {
        for (std::size_t column = 0; column < line.size(); ++column)
            text += (column ? " " : "") + padding(line[column], widths[column]) + line[column];
        text += '\n';
    };
    add_line(titles);
    std::ranges::for_each(cells, add_line);
    return text + notices(report);
}

std::string to_markdown(const FastxtendReport& report) {
    const auto titles = column_titles(report);
    const Table cells = formatted_cells(report);
    const auto widths = widths_of(titles, cells, [](std::string_view title) { return width_of(title) + 2; });
    std::string text;
    const auto add_line = [&](const std::vector<std::string>& line) {
        for (std::size_t column = 0; column < line.size(); ++column) {
            const std::string blanks = padding(line[column], widths[column]);
            text +=
                titles[column] == calls_title ? "| " + blanks + line[column] + " " : "| " + line[column] + blanks + " ";
        }
        text += "|\n";
    };
    add_line(titles);
    for (std::size_t column = 0; column < titles.size(); ++column) {
        const std::string dashes(widths[column] + 1, '-');
        text += titles[column] == calls_title ? "|" + dashes + ":" : "|:" + dashes;
    }
    text += "|\n";
    std::ranges::for_each(cells, add_line);
    return text + notices(report);
}

std::string to_csv(const FastxtendReport& report) {
    std::string text = csv_line(column_titles(report));
    for (const auto& row : raw_cells(report))
        text += csv_line(row);
    return text;
}

}   // namespace drawpoint
