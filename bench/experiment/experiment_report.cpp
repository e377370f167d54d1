#include <drawpoint/bench/experiment/experiment_report.hpp>

#include "bench/experiment/rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/statistics.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::bench {

namespace {

using Json = nlohmann::ordered_json;

std::string_view unit_name(Metric::Unit unit) {
    constexpr std::array<std::string_view, 4> names{"seconds", "count", "bytes", "number"};
    return names[static_cast<std::size_t>(unit)];
}

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

}   // namespace

std::string value_text(double value, Metric::Unit unit) {
    switch (unit) {
    case Metric::Unit::seconds: return format_duration(value);
    case Metric::Unit::bytes: return format_bytes(value);
    case Metric::Unit::number: return fmt::format("{:.4g}", value);
    case Metric::Unit::count: break;
    }
    return format_count(std::llround(value));
}

std::string ratio_text(const Interval& ratio) {
    if (!(ratio.low > 0) && !std::isfinite(ratio.high))
        return fmt::format("{:.3f}", ratio.median);
    return fmt::format("{:.3f} ({:.3f} … {:.3f})", ratio.median, ratio.low, ratio.high);
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

std::string to_text(const Measurements& measured, std::span<const Comparison> comparisons, double error) {
    std::size_t widest_metric = 16, widest = 9;
    for (const Metric& metric : measured.metrics)
        widest_metric = std::max(widest_metric, printable(metric.name).size());
    for (const std::string& name : measured.contenders)
        widest = std::max(widest, printable(name).size());
    std::string text;
    for (std::size_t metric = 0; metric < measured.metrics.size(); ++metric)
        for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender) {
            const Metric& what = measured.metrics[metric];
            const double median = statistics::quantile(measured.values(contender, metric), 0.5);
            const Comparison* compared = find(comparisons, contender, metric);
            text += fmt::format("{:<{}}  {:<{}}  {:>10}", contender == 0 ? printable(what.name) : "", widest_metric,
                                printable(measured.contenders[contender]), widest, value_text(median, what.unit));
            text += compared ? fmt::format("   {:<23}  {}\n", ratio_text(compared->ratio), to_text(*compared)) : "\n";
        }
    text += fmt::format("\n{} rounds in {}, in an order drawn anew each round; runs a turn:", measured.rounds.size(),
                        format_duration(measured.seconds()));
    for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender)
        text += fmt::format("{} {} {}", contender == 0 ? "" : ",", printable(measured.contenders[contender]),
                            measured.runs[contender]);
    text += '\n';
    if (const std::size_t disturbed = disturbed_rounds(measured); disturbed != 0)
        text += fmt::format("{} of the rounds were disturbed by other processes or guests\n", disturbed);
    if (!comparisons.empty())
        text += fmt::format("ratios are to {}; all bounds together hold with {:.3g} %, at whatever round one looks\n",
                            printable(measured.contenders.front()), 100 * (1 - error));
    if (const std::string reason = unfit(measured); !reason.empty())
        text += fmt::format("no place to measure: {}\n", reason);
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
        document["metrics"].push_back(
            {{"name", metric.name}, {"unit", unit_name(metric.unit)}, {"compared", metric.compared}});
    document["contenders"] = Json::array();
    for (std::size_t contender = 0; contender < measured.contenders.size(); ++contender) {
        Json medians = Json::array();
        for (std::size_t metric = 0; metric < measured.metrics.size(); ++metric)
            medians.push_back(statistics::quantile(measured.values(contender, metric), 0.5));
        document["contenders"].push_back({{"name", measured.contenders[contender]},
                                          {"description", measured.descriptions[contender]},
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
                                      {"values", round.values}});
    document["disturbed_rounds"] = disturbed_rounds(measured);
    document["unfit"] = unfit(measured);
    return document;
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
