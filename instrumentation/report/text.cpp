#include <drawpoint/instrumentation/report/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

#include "instrumentation/report/text_sentences.hpp"

namespace drawpoint {
namespace {

using namespace sentences;

/// Indentation level of an action's row; parts are deeper than their whole.
std::size_t depth_of(Action action) noexcept {
    switch (action) {
    case Action::fit:
    case Action::step:
    case Action::between:
    case Action::end_of_data: return 0;
    case Action::epoch:
    case Action::draw:
    case Action::batch: return 1;
    default: return 2;
    }
}

TextTable rows_table(const Summary& summary, bool indent, const std::function<bool(const SummaryRow&)>& shows) {
    TextTable table{
        .titles = {"phase", "action", "calls", "mean", "median", "p90", "p99", "total", "share", "samples/s"},
        .align = "ll",
        .spare = {5, 4, 8, 6},
        .name = 1};
    std::string_view phase;
    for (const SummaryRow& row : summary.rows) {
        if (!shows(row))
            continue;
        const std::size_t depth = indent ? depth_of(row.action) : 0;
        table.rows.push_back({std::string{std::exchange(phase, row.phase) == row.phase ? "" : row.phase},
                              std::string(2 * depth, ' ') + std::string{name_of(row.action)},
                              format_count(static_cast<std::int64_t>(row.calls)), format_duration(row.mean_s),
                              format_duration(row.median_s), format_duration(row.p90_s), format_duration(row.p99_s),
                              format_duration(row.total_s), percent(row.share_of_total), rate(row.samples_per_s)});
    }
    return table;
}
bool every_row(const SummaryRow&) { return true; }

TextTable stages_table(const Summary& summary) {
    TextTable table{.titles = {"stage", "calls", "mean", "median", "p90", "p99", "total", "read", "failed"},
                    .spare = {4, 3}};
    for (const StageSummary& stage : summary.stages)
        table.rows.push_back({printable(stage.stage), format_count(static_cast<std::int64_t>(stage.calls)),
                              format_duration(stage.mean_s), format_duration(stage.median_s),
                              format_duration(stage.p90_s), format_duration(stage.p99_s),
                              format_duration(stage.total_s),
                              stage.bytes == 0 ? std::string{unknown} : format_bytes(static_cast<double>(stage.bytes)),
                              format_count(static_cast<std::int64_t>(stage.failures))});
    return table;
}

constexpr std::size_t label_width = 11;

/// The lines of a label and its text, which is broken between its parts, and within a part that is longer than a line.
std::vector<std::string> lines_of(const Line& line, TextOptions options) {
    const auto& [label, parts] = line;
    const std::size_t room = std::max(options.width, label_width + 20) - label_width;
    std::vector<std::string> texts{""};
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string part = parts[i] + (i + 1 < parts.size() ? "," : "");
        const std::size_t width = columns_of(texts.back());
        if (width > 0 && width + 1 + columns_of(part) > room)
            texts.emplace_back();
        texts.back() += (texts.back().empty() ? "" : " ") + part;
        if (std::vector<std::string> broken = wrapped(texts.back(), room); broken.size() > 1) {
            texts.pop_back();
            std::ranges::move(broken, std::back_inserter(texts));
        }
    }
    const TextStyle style = label == "DISTRUST" ? TextStyle::red : TextStyle::bold;
    std::vector<std::string> lines;
    for (const std::string& text : texts)
        lines.push_back((lines.empty() ? styled(padded(label, label_width), style, options.colour)
                                       : std::string(label_width, ' ')) +
                        text);
    return lines;
}

std::string text_of(const std::vector<Line>& all, TextOptions options) {
    std::string text;
    for (const Line& line : all)
        for (const std::string& one : lines_of(line, options))
            text += one + "\n";
    return text;
}

/// The first lines of a text; if there are more, the last of these ends with `…`.
std::string at_most(std::size_t most, std::string_view text, TextOptions options) {
    std::size_t begin = 0, end = 0;   // of the last line
    for (std::size_t line = 0; line < most; ++line) {
        begin = end;
        const std::size_t next = text.find('\n', end);
        if (next == text.npos || next + 1 == text.size())
            return std::string{text};
        end = next + 1;
    }
    const std::string_view last = text.substr(begin, end - 1 - begin);
    return std::string{text.substr(0, begin)} + cut(std::string{last} + " …", options.width) + "\n";
}

bool has_chart(const Summary& summary) { return summary.draws && summary.draws->over_run_s.size() > 1; }

/// The draws over the run and by duration, as two small charts.
std::vector<Line> draws_lines(const Summary& summary, TextOptions options) {
    const Summary::Draws& draws = *summary.draws;
    const std::size_t room = std::max(options.width, label_width + 50) - label_width - 40;   // beside what is said
    const auto row = std::ranges::find_if(
        summary.rows, [&](const SummaryRow& one) { return one.phase == draws.phase && one.action == Action::draw; });
    const std::uint64_t all = draws.all();
    const std::string which = row != summary.rows.end() && row->calls > all
                                  ? fmt::format("the last {}", format_count(static_cast<std::int64_t>(all)))
                                  : std::string{"over the run"};
    std::vector<double> counts;
    for (const std::uint64_t count : draws.counts)
        counts.push_back(static_cast<double>(count));
    return {{"draws",
             {fmt::format("{} {}, {}, up to {}", sparkline(draws.over_run_s, std::min<std::size_t>(room, 40)),
                          draws.phase, which, format_duration(std::ranges::max(draws.over_run_s)))}},
            {"",
             {fmt::format("{} by duration, from {} to {}", sparkline(counts, room), format_duration(draws.begin_s(0)),
                          format_duration(draws.begin_s(draws.counts.size())))}}};
}

std::string markdown_of(const TextTable& table) {
    std::string text = "|";
    const auto cell = [](std::string_view content) {
        std::string escaped;
        for (const char c : content)
            escaped += c == '|' ? std::string{"\\|"} : std::string(1, c);
        return " " + escaped + " |";
    };
    for (const std::string& title : table.titles)
        text += cell(title);
    text += "\n|";
    for (std::size_t column = 0; column < table.titles.size(); ++column)
        text += column < table.align.size() && table.align[column] == 'l' ? ":--|" : "--:|";
    for (const auto& row : table.rows) {
        text += "\n|";
        for (const std::string& content : row)
            text += cell(content);
    }
    return text + "\n";
}

std::string markdown_of(const std::vector<Line>& lines) {
    std::string text;
    for (const auto& [label, parts] : lines)
        text += fmt::format("{}{}{}{}\n", label.empty() ? "  " : "- **", label, label.empty() ? "" : "** ",
                            fmt::join(parts, ", "));
    return text;
}

std::string shortest(std::optional<double> value) { return value ? fmt::format("{}", *value) : std::string{}; }

}   // namespace

std::string to_text(const Summary& summary, TextOptions options) {
    if (summary.run.steps == 0)
        return "no steps\n";
    std::string text;
    for (const Line& line : headline(summary, options)) {
        text += text_of({line}, options);
        if (line.first == "draw" && has_chart(summary))
            text += text_of(draws_lines(summary, options), options);
    }
    text += "\n" + to_text(rows_table(summary, true, every_row), options);
    if (!summary.stages.empty())
        text += "\n" + to_text(stages_table(summary), options);
    return text + "\n" + text_of(footing(summary), options) + text_of(error_lines(summary), options);
}

std::string to_short_text(const Summary& summary, std::string_view verdict, TextOptions options) {
    if (summary.run.steps == 0)
        return "no steps\n";
    constexpr std::size_t most_lines = 22;
    const auto rows_of = [&](bool with_valid) {
        const auto shows = [with_valid](const SummaryRow& row) {
            const bool trains = row.phase == name_of(Phase::train);
            return (row.action == Action::batch && trains) ||
                   ((row.action == Action::step || row.action == Action::draw) && (trains || with_valid));
        };
        return "\n" + to_text(rows_table(summary, true, shows), options);
    };
    // What is said, in this order. Of what is not needed the highest goes first where there is no room for all.
    struct Piece {
        std::string text;
        int not_needed = 0;
    };
    std::vector<Piece> pieces;
    if (!verdict.empty())
        pieces.push_back({at_most(4, verdict, options) + "\n"});
    for (const Line& line : headline(summary, options)) {
        const std::string_view label = line.first;
        pieces.push_back({text_of({line}, options), label.empty()       ? 5   // the second reason to distrust
                                                    : label == "copies" ? 4
                                                    : label == "model"  ? 3
                                                    : label == "blame"  ? 1
                                                                        : 0});
        if (label == "draw" && has_chart(summary))
            pieces.push_back({text_of(draws_lines(summary, options), options), 2});
    }
    if (!summary.errors.empty())
        pieces.push_back(
            {text_of({{"errors", {counted(summary.errors.size(), "sample") + " could not be loaded"}}}, options)});
    if (summary.recording.dropped > 0)
        pieces.push_back({text_of({{"recording", recording_sentences(summary)}}, options)});
    if (summary.recording.error)
        pieces.push_back({text_of({{"cut", damage_sentences(summary)}}, options)});
    pieces.push_back({rows_of(true)});
    const auto lines = [&] {
        std::ptrdiff_t sum = 0;
        for (const Piece& piece : pieces)
            sum += std::ranges::count(piece.text, '\n');
        return static_cast<std::size_t>(sum);
    };
    for (int least = 5; least > 0 && lines() > most_lines; --least)
        std::erase_if(pieces, [&](const Piece& piece) { return piece.not_needed == least; });
    for (std::size_t most = 3; most > 0 && lines() > most_lines; --most)   // a path may be as long as a screen
        for (std::size_t i = verdict.empty() ? 0 : 1; i + 1 < pieces.size(); ++i)
            pieces[i].text = at_most(most, pieces[i].text, options);
    if (lines() > most_lines)
        pieces.back().text = rows_of(false);
    std::string text;
    for (const Piece& piece : pieces)
        text += piece.text;
    return text;
}

std::string to_markdown(const Summary& summary) {
    if (summary.run.steps == 0)
        return "no steps\n";
    std::string text = markdown_of(headline(summary, {})) + "\n" + markdown_of(rows_table(summary, false, every_row));
    if (!summary.stages.empty())
        text += "\n" + markdown_of(stages_table(summary));
    text += "\n" + markdown_of(footing(summary)) + markdown_of(error_lines(summary));
    return text;
}

std::string to_csv(const Summary& summary) {
    std::string text = "phase,action,calls,mean_s,std_s,median_s,p90_s,p99_s,total_s,share_of_total,samples_per_s\n";
    for (const SummaryRow& row : summary.rows)
        text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", row.phase, name_of(row.action), row.calls, row.mean_s,
                            row.std_s, row.median_s, row.p90_s, row.p99_s, row.total_s, shortest(row.share_of_total),
                            shortest(row.samples_per_s));
    return text;
}

}   // namespace drawpoint
