#include <drawpoint/diagnosis/tuner/tuning_report.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "diagnosis/page/page.hpp"

namespace drawpoint {
namespace {

nlohmann::ordered_json to_json(const LoaderSetting& setting) {
    return {{"num_workers", setting.num_workers},
            {"prefetch_depth", setting.prefetch_depth},
            {"order", to_string(setting.order)},
            {"batch_size", setting.batch_size},
            {"read_concurrency", setting.read_concurrency},
            {"memory_budget_bytes", setting.memory_budget}};
}

std::string options_of(const LoaderSetting& setting) {
    return fmt::format("--num-workers {} --prefetch-depth {} --order {}", setting.num_workers, setting.prefetch_depth,
                       to_string(setting.order));
}

std::string rate_text(double batches_per_s) { return fmt::format("{:.4g}", batches_per_s); }

/// A row for each trial: the interval predicted, and the rate measured.
Svg trials_chart(const Tuning& tuning) {
    constexpr double left = 250, bars = 560, right = 90, row_height = 26, top = 8;
    double most = 1e-12;
    for (const TuneTrial& trial : tuning.log)
        most = std::max({most, trial.predicted.high, trial.measured});
    const auto place = [&](double rate) { return left + bars * std::clamp(rate / most, 0.0, 1.0); };
    const double bottom = top + row_height * static_cast<double>(tuning.log.size());
    Svg svg{left + bars + right, bottom + 30,
            fmt::format("Predicted and measured batches per second of {} settings.", tuning.log.size())};
    for (std::size_t i = 0; i < tuning.log.size(); ++i) {
        const TuneTrial& trial = tuning.log[i];
        const LoaderSetting& setting = trial.tried;
        const double y = top + row_height * static_cast<double>(i);
        const std::string name = fmt::format("{} workers, depth {}, {}{}", setting.num_workers, setting.prefetch_depth,
                                             to_string(setting.order), setting == tuning.chosen ? " (chosen)" : "");
        svg.text(left - 8, y + 17, name, "end");
        const double low = place(trial.predicted.low), high = place(trial.predicted.high);
        svg.rect(low, y + 8, std::max(high - low, 1.0), row_height - 16, setting == tuning.chosen ? "k2" : "k4",
                 fmt::format("{}: predicted {} ({} … {})", name, rate_text(trial.predicted.median),
                             rate_text(trial.predicted.low), rate_text(trial.predicted.high)));
        if (trial.blocks == 0)
            continue;
        svg.circle(place(trial.measured), y + row_height / 2, 5, "w0",
                   fmt::format("{}: measured {}", name, rate_text(trial.measured)));
        svg.text(std::max(high, place(trial.measured)) + 10, y + 17, rate_text(trial.measured));
    }
    svg.line(left, bottom, left + bars, bottom, "axis");
    svg.text(left, bottom + 20, "0");
    svg.text(left + bars, bottom + 20, rate_text(most) + " batches/s", "end");
    svg.legend(left, bottom + 40,
               {{"k4", "predicted, 90 %"}, {"k2", "of the chosen setting"}, {"w0", "measured (a dot)"}});
    return svg;
}

}   // namespace

std::string to_text(const Tuning& tuning, TextOptions options) {
    TextTable table{.titles = {"workers", "depth", "order", "predicted batches/s", "measured", "blocks", "decision"},
                    .align = "rrrrrrl",
                    .spare = {5},
                    .name = 6};
    for (const TuneTrial& trial : tuning.log)
        table.rows.push_back({fmt::format("{}", trial.tried.num_workers), fmt::format("{}", trial.tried.prefetch_depth),
                              std::string{to_string(trial.tried.order)},
                              fmt::format("{} ({} - {})", rate_text(trial.predicted.median),
                                          rate_text(trial.predicted.low), rate_text(trial.predicted.high)),
                              trial.blocks != 0 ? rate_text(trial.measured) : "-", fmt::format("{}", trial.blocks),
                              styled(trial.decision, trial.tried == tuning.chosen ? TextStyle::green : TextStyle::plain,
                                     options.colour)});
    return to_text(table, options) +
           fmt::format("\n{}: {} batches/s, best seen {}; {} steps; {}\n",
                       styled(options_of(tuning.chosen), TextStyle::bold, options.colour),
                       rate_text(tuning.batches_per_s), rate_text(tuning.best_seen), tuning.steps_used,
                       styled(tuning.why, tuning.trusted ? TextStyle::plain : TextStyle::red, options.colour));
}

std::string to_html(const Tuning& tuning, std::string_view title) {
    std::string body =
        paragraph_of(options_of(tuning.chosen), "verdict") + paragraph_of(tuning.why, tuning.trusted ? "" : "bad");
    body += figure_of(trials_chart(tuning), "What was predicted of each setting, and what was measured.");
    PageTable table{
        .caption = "Batches per second",
        .titles = {"workers", "depth", "order", "predicted", "low", "high", "measured", "blocks", "decision"},
        .rows = {}};
    const auto number = [](double value, std::string text) { return PageCell{std::optional{value}, std::move(text)}; };
    for (const TuneTrial& trial : tuning.log) {
        if (trial.tried == tuning.chosen)
            table.bold_row = table.rows.size();
        const auto of = [&](std::size_t count) { return number(static_cast<double>(count), fmt::format("{}", count)); };
        table.rows.push_back(
            {of(trial.tried.num_workers), of(trial.tried.prefetch_depth), to_string(trial.tried.order),
             number(trial.predicted.median, rate_text(trial.predicted.median)),
             number(trial.predicted.low, rate_text(trial.predicted.low)),
             number(trial.predicted.high, rate_text(trial.predicted.high)),
             PageCell{trial.blocks != 0 ? std::optional{trial.measured} : std::nullopt, rate_text(trial.measured)},
             of(trial.blocks), trial.decision});
    }
    body += element_of(table);
    body += paragraph_of(fmt::format("{} steps, best seen {} batches/s; others used {:.2f} cores.", tuning.steps_used,
                                     rate_text(tuning.best_seen), std::max(tuning.foreign_cores, 0.0)));
    return page_of(title, body);
}

nlohmann::ordered_json to_json(const Tuning& tuning, const JsonHead& head, const Machine& machine) {
    nlohmann::ordered_json document = json_document("drawpoint.tuning/1", head, machine);
    document["chosen"] = to_json(tuning.chosen);
    document["batches_per_s"] = tuning.batches_per_s;
    document["best_seen"] = tuning.best_seen;
    document["steps_used"] = tuning.steps_used;
    document["separated"] = tuning.separated;
    document["trusted"] = tuning.trusted;
    document["foreign_cores"] = tuning.foreign_cores;
    document["why"] = tuning.why;
    document["log"] = nlohmann::ordered_json::array();
    for (const TuneTrial& trial : tuning.log)
        document["log"].push_back({{"tried", to_json(trial.tried)},
                                   {"predicted", trial.predicted.median},
                                   {"low", trial.predicted.low},
                                   {"high", trial.predicted.high},
                                   {"measured", trial.blocks != 0 ? nlohmann::ordered_json(trial.measured) : nullptr},
                                   {"blocks", trial.blocks},
                                   {"decision", trial.decision}});
    return document;
}

std::string name_of(const TuneTrial& trial) {
    return fmt::format("{}_workers_depth_{}_order_{}", trial.tried.num_workers, trial.tried.prefetch_depth,
                       to_string(trial.tried.order));
}

void log_trial(const TuneTrial& trial, Logger& logger) {
    const std::string workers = fmt::format("{}", trial.tried.num_workers),
                      depth = fmt::format("{}", trial.tried.prefetch_depth), order{to_string(trial.tried.order)};
    std::vector<Scalar> scalars{{"tune/predicted", trial.predicted.median},
                                {"tune/low", trial.predicted.low},
                                {"tune/high", trial.predicted.high}};
    if (trial.blocks != 0)
        scalars.push_back({"tune/measured", trial.measured});
    std::vector<std::string_view> metrics;
    for (const Scalar& scalar : scalars)
        metrics.push_back(scalar.name);
    const std::vector<LogSetting> settings{
        {"num-workers", workers}, {"prefetch-depth", depth}, {"order", order}, {"decision", trial.decision}};
    logger.log_settings(settings, metrics);
    logger.log_scalars(scalars, 1);
}

}   // namespace drawpoint
