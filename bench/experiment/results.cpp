#include <drawpoint/bench/experiment/results.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/experiment/google_rows.hpp"
#include "bench/experiment/rows.hpp"
#include "bench/experiment/turn_json.hpp"
#include <drawpoint/bench/experiment/experiment_report.hpp>
#include <drawpoint/instrumentation/statistics.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view no_verdict =
    "no verdict on times: the files were not measured in the same rounds, so a ratio also has what changed on the "
    "machine meanwhile; `drawpoint gate --base … --new …` races the two";

double median_of(const ResultRow& row) { return statistics::quantile(row.values, 0.5); }

const ResultRow* find(const Results& results, const std::string& name) {
    const auto found = std::ranges::find(results.rows, name, &ResultRow::name);
    return found == results.rows.end() ? nullptr : &*found;
}

/// The names of all rows, in the order in which they come first.
std::vector<std::string> names_of(std::span<const Results> files) {
    std::vector<std::string> names;
    for (const Results& file : files)
        for (const ResultRow& row : file.rows)
            if (std::ranges::find(names, row.name) == names.end())
                names.push_back(row.name);
    return names;
}

/// "×1.049", "equal" for what is counted, or "" if one of them is missing.
std::string ratio_of(const ResultRow* base, const ResultRow* row) {
    if (!base || !row)
        return "";
    const double before = median_of(*base), after = median_of(*row);
    if (before == after)
        return is_counted(row->unit) ? "equal" : "×1.000";
    const double ratio = after / before;
    return std::isfinite(ratio) ? fmt::format("×{:.3f}", ratio) : "not equal";
}

/// Calls see(name, cells): of each row the medians of the files, of all but the first with the ratio to it.
void for_each_row(std::span<const Results> files,
                  const std::function<void(const std::string&, const std::vector<std::string>&)>& see) {
    for (const std::string& name : names_of(files)) {
        const ResultRow* base = find(files.front(), name);
        std::vector<std::string> cells;
        for (const Results& file : files) {
            const ResultRow* row = find(file, name);
            cells.push_back(row ? value_text(median_of(*row), row->unit) : "-");
            if (&file != &files.front())
                cells.push_back(ratio_of(base, row));
        }
        see(printable(name), cells);
    }
}

std::vector<std::string> titles_of(std::span<const Results> files) {
    std::vector<std::string> titles;
    for (const Results& file : files) {
        titles.push_back(printable(file.name));
        if (&file != &files.front())
            titles.emplace_back("");
    }
    return titles;
}

}   // namespace

namespace {

/// Calls see(row, name) for each run of Google Benchmark's that did not fail: aggregates repeat what these say.
template <class F>
void for_each_google_run(const nlohmann::json& document, F&& see) {
    for (const auto& row : document.at("benchmarks"))
        if (row.value("run_type", "iteration") == "iteration" && !row.value("error_occurred", false) &&
            !row.value("skipped", false))
            see(row, row.value("run_name", row.value("name", "")));
}

/// Adds a value to the row of this name.
void add_value(std::vector<ResultRow>& rows, ResultRow of, double value) {
    auto at = std::ranges::find(rows, of.name, &ResultRow::name);
    if (at == rows.end())
        at = rows.insert(rows.end(), std::move(of));
    at->values.push_back(value);
}

/// What Google Benchmark's memory manager counts.
std::vector<ResultRow> google_counts(const nlohmann::json& document) {
    std::vector<ResultRow> rows;
    for_each_google_run(document, [&](const nlohmann::json& row, const std::string& name) {
        for (const auto& [key, unit] : {std::pair{"allocs_per_iter", Metric::Unit::count},
                                        {"max_bytes_used", Metric::Unit::bytes},
                                        {"total_allocated_bytes", Metric::Unit::bytes}})
            if (row.contains(key))
                add_value(rows, {.name = fmt::format("{} {}", name, key), .unit = unit, .values = {}, .is_exact = true},
                          row.at(key).get<double>());
    });
    return rows;
}

}   // namespace

std::vector<ResultRow> google_rows(const nlohmann::json& document) {
    std::vector<ResultRow> rows;
    for_each_google_run(document, [&](const nlohmann::json& row, const std::string& name) {
        const std::string unit = row.value("time_unit", "ns");
        const double factor = unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9;
        for (const char* time : {"real_time", "cpu_time"})
            add_value(rows, {.name = fmt::format("{} {}", name, time), .values = {}}, factor * row.value(time, 0.0));
    });
    return rows;
}

bool has_only_aggregates(const nlohmann::json& document) {
    const auto& rows = document.at("benchmarks");
    return !rows.empty() && std::ranges::all_of(rows, [](const nlohmann::json& row) {
        return row.value("run_type", "iteration") == "aggregate";
    });
}

std::string google_failure(const nlohmann::json& document) {
    for (const auto& row : document.at("benchmarks"))
        if (row.value("error_occurred", false))
            return fmt::format("{} failed: {}", row.value("name", ""), row.value("error_message", ""));
    return "";
}

Results results_in(std::string name, const nlohmann::json& document) {
    Results results{.name = std::move(name)};
    if (document.is_object() && document.contains("benchmarks")) {
        try {
            results.rows = google_rows(document);
            if (results.rows.empty() && has_only_aggregates(document))
                throw std::invalid_argument{std::string{only_aggregates}};
            std::ranges::move(google_counts(document), std::back_inserter(results.rows));
            results.failure = google_failure(document);
        } catch (const nlohmann::json::exception& error) {
            throw std::invalid_argument{fmt::format("it is no JSON of Google Benchmark: {}", error.what())};
        }
    } else {
        const Measurements measured = measurements_from_json(document);
        for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender)
            for (std::size_t metric = 0; metric < measured.metrics.size(); ++metric)
                if (measured.measures[contender][metric] && !measured.rounds.empty())
                    results.rows.push_back(
                        {.name = fmt::format("{}: {}", measured.contenders[contender], measured.metrics[metric].name),
                         .unit = measured.metrics[metric].unit,
                         .values = measured.values(contender, metric),
                         .runs = measured.runs[contender]});
        for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender) {
            const std::string& of = measured.contenders[contender];
            const auto note = [&](const std::string& part, const std::string& reason) {
                if (!reason.empty() && results.failure.empty())
                    results.failure = fmt::format("{}{}{}: {}", of, part.empty() ? "" : " ", part, reason);
            };
            note("", measured.not_run[contender]);
            for (const Part& part : measured.parts[contender]) {
                note(part.name, part.not_run);
                if (part.digest)
                    results.outputs.emplace_back(fmt::format("{}{}{}", of, part.name.empty() ? "" : " ", part.name),
                                                 *part.digest);
            }
        }
    }
    if (results.rows.empty())
        throw std::invalid_argument{results.failure.empty() ? "it holds no results" : results.failure};
    return results;
}

std::string results_to_text(std::span<const Results> files, TextOptions options) {
    TextTable table{.titles = titles_of(files)};
    table.titles.insert(table.titles.begin(), "");
    for_each_row(files, [&](const std::string& name, const std::vector<std::string>& cells) {
        table.rows.push_back(cells);
        table.rows.back().insert(table.rows.back().begin(), name);
    });
    return to_text(table, options) + fmt::format("\n{}\n", no_verdict);
}

std::string results_to_markdown(std::span<const Results> files) {
    const auto line_of = [](const std::string& first, const std::vector<std::string>& cells) {
        std::string line = "| " + markdown_cell(first) + " |";
        for (const std::string& cell : cells)
            line += " " + markdown_cell(cell) + " |";
        return line + "\n";
    };
    const std::vector<std::string> titles = titles_of(files);
    std::string text = line_of("", titles) + "|---|";
    for (std::size_t i = 0; i < titles.size(); ++i)
        text += "---|";
    text += "\n";
    for_each_row(files,
                 [&](const std::string& name, const std::vector<std::string>& cells) { text += line_of(name, cells); });
    return text + fmt::format("\n{}\n", no_verdict);
}

Json results_to_json(std::span<const Results> files, const JsonHead& head, const Machine& machine) {
    Json document = json_document("drawpoint.result-comparison/1", head, machine);
    document["files"] = document["rows"] = Json::array();
    for (const Results& file : files)
        document["files"].push_back(file.name);
    for (const std::string& name : names_of(files)) {
        Json row{{"name", name}, {"unit", nullptr}, {"medians", Json::array()}, {"ratios", Json::array()}};
        const ResultRow* base = find(files.front(), name);
        for (const Results& file : files) {
            const ResultRow* one = find(file, name);
            if (one)
                row["unit"] = unit_name(one->unit);
            row["medians"].push_back(one ? Json(median_of(*one)) : Json(nullptr));
            row["ratios"].push_back(one && base ? Json(median_of(*one) / median_of(*base)) : Json(nullptr));
        }
        document["rows"].push_back(std::move(row));
    }
    document["no_verdict_on_times"] = no_verdict;
    return document;
}

}   // namespace drawpoint::bench
