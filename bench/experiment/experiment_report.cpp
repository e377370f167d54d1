#include <drawpoint/bench/experiment/experiment_report.hpp>

#include "bench/experiment/rows.hpp"
#include "bench/experiment/turn_json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/statistics.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::bench {

namespace {

using Json = nlohmann::ordered_json;

std::string_view finding_name(Finding finding) {
    constexpr std::array<std::string_view, 5> names{"faster", "slower", "no difference shown", "too few rounds",
                                                    "no common ratio"};
    return names[static_cast<std::size_t>(finding)];
}

/// Bounds that are not known are null: JSON has no infinity, and a ratio is above 0.
Json ratio_json(const Interval& ratio) {
    return {{"median", ratio.median},
            {"low", ratio.low > 0 ? Json(ratio.low) : Json(nullptr)},
            {"high", std::isfinite(ratio.high) ? Json(ratio.high) : Json(nullptr)}};
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::optional<double> optional_in(const nlohmann::json& value) {
    return value.is_null() ? std::nullopt : std::optional{value.get<double>()};
}

Json parts_json(std::span<const Part> parts) {
    Json all = Json::array();
    for (const Part& part : parts)
        all.push_back({{"name", part.name},
                       {"digest", part.digest ? Json(*part.digest) : Json(nullptr)},
                       {"not_run", part.not_run}});
    return all;
}

std::vector<Part> parts_in(const nlohmann::json& document) {
    std::vector<Part> parts;
    for (const nlohmann::json& part : document) {
        parts.push_back({.name = part.at("name"), .digest = {}, .not_run = part.at("not_run")});
        if (const nlohmann::json& digest = part.at("digest"); !digest.is_null())
            parts.back().digest = digest.get<std::string>();
    }
    return parts;
}

/// [contender][metric]; null: not a number.
std::vector<std::vector<double>> numbers_in(const nlohmann::json& rows) {
    std::vector<std::vector<double>> all;
    for (const nlohmann::json& row : rows)
        for (all.emplace_back(); const nlohmann::json& value : row)
            all.back().push_back(optional_in(value).value_or(std::numeric_limits<double>::quiet_NaN()));
    return all;
}

}   // namespace

bool has_value(const Measurements& measured, std::size_t contender, std::size_t metric) {
    return std::ranges::none_of(measured.values(contender, metric), [](double value) { return std::isnan(value); });
}

std::string value_text(double value, Metric::Unit unit) {
    switch (unit) {
    case Metric::Unit::seconds: return format_duration(value);
    case Metric::Unit::bytes: return format_bytes(value);
    case Metric::Unit::number: return fmt::format("{:.4g}", value);
    case Metric::Unit::count: break;
    }
    if (value < 100 && value != std::floor(value))   // a mean
        return fmt::format("{:.3g}", value);
    return format_count(std::llround(value));
}

std::string ratio_text(const Interval& ratio) {
    if (!(ratio.low > 0) && !std::isfinite(ratio.high))
        return fmt::format("{:.3f}", ratio.median);
    return fmt::format("{:.3f} ({:.3f} … {:.3f})", ratio.median, ratio.low, ratio.high);
}

std::string markdown_cell(std::string text) {
    for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2)
        text.insert(at, 1, '\\');
    return text;
}

const Comparison* find(std::span<const Comparison> comparisons, std::size_t contender, std::size_t metric) {
    const auto found = std::ranges::find_if(
        comparisons, [&](const Comparison& one) { return one.contender == contender && one.metric == metric; });
    return found == comparisons.end() ? nullptr : &*found;
}

std::string to_text(const Comparison& comparison) {
    const auto more = [](double ratio) { return (ratio - 1) * 100; };   // per cent
    const Interval& ratio = comparison.ratio;
    switch (comparison.finding) {
    case Finding::slower:
        return fmt::format("slower by {:.1f} % ({:.1f} … {:.1f})", more(ratio.median), more(ratio.low),
                           more(ratio.high));
    case Finding::faster:
        return fmt::format("faster by {:.1f} % ({:.1f} … {:.1f})", -more(ratio.median), -more(ratio.high),
                           -more(ratio.low));
    case Finding::no_difference_shown:
        return fmt::format("no difference shown, at most {:.1f} %", std::max(more(ratio.high), -more(ratio.low)));
    case Finding::no_common_ratio: return "the ratio changed while it was measured";
    case Finding::too_few_rounds: break;
    }
    return "too few rounds to say";
}

std::string to_text(const Measurements& measured, std::span<const Comparison> comparisons, double error,
                    TextOptions options) {
    TextTable table{.titles = {}, .align = "llrll", .spare = {3}};
    for (std::size_t metric = 0; metric < measured.metrics.size(); ++metric) {
        const Metric& what = measured.metrics[metric];
        std::string name = printable(what.name);
        for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender) {
            if (!has_value(measured, contender, metric))
                continue;
            const double median = statistics::quantile(measured.values(contender, metric), 0.5);
            const Comparison* compared = find(comparisons, contender, metric);
            const Finding finding = compared ? compared->finding : Finding::no_difference_shown;
            const TextStyle style = finding == Finding::slower   ? TextStyle::red
                                    : finding == Finding::faster ? TextStyle::green
                                                                 : TextStyle::plain;
            table.rows.push_back({std::exchange(name, ""), printable(measured.contenders[contender]),
                                  value_text(median, what.unit), compared ? ratio_text(compared->ratio) : "",
                                  compared ? styled(to_text(*compared), style, options.colour) : ""});
        }
    }
    std::string text = to_text(table, options);
    for (const std::string& reason : measured.not_run)
        if (!reason.empty())
            text += fmt::format("not run: {}\n", printable(reason));
    for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender) {
        for (const Part& part : measured.parts[contender])
            if (!part.not_run.empty())
                text += fmt::format("not run: row {} of {}: {}\n", printable(part.name),
                                    printable(measured.contenders[contender]), printable(part.not_run));
        for (const std::string& sentence : differing_parts(measured, contender))
            text += printable(sentence) + "\n";
    }
    text += fmt::format("\n{} rounds in {}, in an order drawn anew each round; runs a turn:", measured.rounds.size(),
                        format_duration(measured.seconds()));
    for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender)
        if (measured.not_run[contender].empty())
            text += fmt::format("{} {} {}", contender == 0 ? "" : ",", printable(measured.contenders[contender]),
                                measured.runs[contender]);
    text += '\n';
    if (const std::size_t disturbed = disturbed_rounds(measured); disturbed != 0)
        text += fmt::format("{} disturbed by other processes or guests\n",
                            disturbed == 1 ? "1 round was" : fmt::format("{} rounds were", disturbed));
    if (!comparisons.empty())
        text += fmt::format("ratios are to {}; all bounds together hold with {:.3g} %, at whatever round one looks\n",
                            printable(measured.contenders.front()), 100 * (1 - error));
    if (const std::string reason = unfit(measured); !reason.empty())
        text += fmt::format("{}: {}\n", measured.failure.empty() ? "no place to measure" : "no verdict", reason);
    return text;
}

Json to_json(const Measurements& measured, std::span<const Comparison> comparisons, double error, const JsonHead& head,
             const Machine& machine) {
    Json document = json_document("drawpoint.experiment/1", head, machine);
    document["seed"] = measured.seed;
    document["error"] = error;
    document["cores"] = measured.cores;
    document["metrics"] = Json::array();
    for (const Metric& metric : measured.metrics)
        document["metrics"].push_back({{"name", metric.name},
                                       {"unit", unit_name(metric.unit)},
                                       {"compared", metric.compared},
                                       {"by_item", metric.by_item}});
    document["contenders"] = Json::array();
    for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender) {
        Json medians = Json::array();
        for (std::size_t metric = 0; metric < measured.metrics.size(); ++metric)
            medians.push_back(has_value(measured, contender, metric)
                                  ? Json(statistics::quantile(measured.values(contender, metric), 0.5))
                                  : Json(nullptr));
        document["contenders"].push_back({{"name", measured.contenders[contender]},
                                          {"description", measured.descriptions[contender]},
                                          {"not_run", measured.not_run[contender]},
                                          {"flaw", measured.flaws[contender]},
                                          {"parts", parts_json(measured.parts[contender])},
                                          {"differs", differing_parts(measured, contender)},
                                          {"runs_per_turn", measured.runs[contender]},
                                          {"medians", std::move(medians)}});
    }
    document["comparisons"] = Json::array();
    for (const Comparison& one : comparisons)
        document["comparisons"].push_back({{"contender", measured.contenders[one.contender]},
                                           {"metric", measured.metrics[one.metric].name},
                                           {"ratio", ratio_json(one.ratio)},
                                           {"finding", finding_name(one.finding)},
                                           {"text", to_text(one)}});
    document["rounds"] = Json::array();
    for (const Round& round : measured.rounds)
        document["rounds"].push_back({{"order", round.order},
                                      {"seconds", round.seconds},
                                      {"foreign_cores", optional_json(round.foreign_cores)},
                                      {"steal", optional_json(round.steal)},
                                      {"values", round.values},
                                      {"log_ratios", round.log_ratios}});
    document["disturbed_rounds"] = disturbed_rounds(measured);
    document["unfit"] = unfit(measured);
    return document;
}

Measurements measurements_from_json(const nlohmann::json& document) {
    const auto check = [](bool good, const char* what) {
        if (!good)
            throw std::invalid_argument{what};
    };
    Measurements measured;
    try {
        check(document.at("schema") == "drawpoint.experiment/1", "its schema is not drawpoint.experiment/1");
        measured.seed = document.at("seed");
        measured.cores = document.at("cores");
        for (const nlohmann::json& metric : document.at("metrics"))
            measured.metrics.push_back({.name = metric.at("name"),
                                        .unit = unit_in(metric.at("unit")),
                                        .compared = metric.at("compared"),
                                        .by_item = metric.at("by_item")});
        for (const nlohmann::json& contender : document.at("contenders")) {
            measured.contenders.push_back(contender.at("name"));
            measured.descriptions.push_back(contender.at("description"));
            measured.not_run.push_back(contender.at("not_run"));
            measured.flaws.push_back(contender.at("flaw"));
            measured.parts.push_back(parts_in(contender.value("parts", nlohmann::json::array())));
            measured.runs.push_back(contender.at("runs_per_turn"));
        }
        for (const nlohmann::json& round : document.at("rounds"))
            measured.rounds.push_back({.order = round.at("order"),
                                       .values = numbers_in(round.at("values")),
                                       .log_ratios = numbers_in(round.at("log_ratios")),
                                       .seconds = round.at("seconds"),
                                       .foreign_cores = optional_in(round.at("foreign_cores")),
                                       .steal = optional_in(round.at("steal"))});
    } catch (const nlohmann::json::exception& error) {
        throw std::invalid_argument{fmt::format("it is no document of an experiment: {}", error.what())};
    }
    const std::size_t contenders = measured.contenders.size(), metrics = measured.metrics.size();
    check(contenders != 0, "it has no contender");
    const auto has_place = [&](const std::vector<std::vector<double>>& numbers) {
        return numbers.size() == contenders &&
               std::ranges::all_of(numbers, [&](const auto& row) { return row.size() == metrics; });
    };
    for (const Round& round : measured.rounds)
        check(has_place(round.values) && has_place(round.log_ratios) &&
                  std::ranges::all_of(round.order, [&](std::size_t place) { return place < contenders; }),
              "a round does not have a number for each contender and metric");
    for (std::size_t i = 0; i < contenders; ++i) {
        std::vector<bool>& measures = measured.measures.emplace_back(metrics);
        for (std::size_t metric = 0; metric < metrics; ++metric)
            measures[metric] = has_value(measured, i, metric);
    }
    return measured;
}

std::string to_text(std::span<const GatePower> all) {
    std::string text = "planted      closes   opens   undecided   rounds until then (median)\n";
    for (const GatePower& one : all)
        text += fmt::format("{:<11}{:>6.1f} %{:>6.1f} %{:>10.1f} %   {}\n",
                            one.slower_by > 0 ? fmt::format("{:.3g} %", one.slower_by * 100) : "nothing",
                            one.closed * 100, one.opened * 100, (1 - one.closed - one.opened) * 100,
                            std::isfinite(one.median_rounds) ? fmt::format("{:.3g}", one.median_rounds) : "-");
    return text;
}

Json to_json(std::span<const GatePower> all) {
    Json rows = Json::array();
    for (const GatePower& one : all)
        rows.push_back({{"slower_by", one.slower_by},
                        {"closed", one.closed},
                        {"opened", one.opened},
                        {"median_rounds", one.median_rounds}});
    return rows;
}

}   // namespace drawpoint::bench
