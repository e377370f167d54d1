#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/report/machine.hpp>
#include <drawpoint/instrumentation/statistics.hpp>

#include "score.hpp"

namespace drawpoint::bench {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> mean_of(const std::vector<double>& values) {
    if (values.empty())
        return std::nullopt;
    return statistics::mean(values);
}

std::optional<double> quantile_of(const std::vector<double>& values, double q) {
    if (values.empty())
        return std::nullopt;
    return statistics::quantile(values, q);
}

Json or_null(std::optional<double> value, double times = 1) { return value ? Json(*value * times) : Json(nullptr); }
Json or_null(const Share& share) { return share.of > 0 ? Json(share.value()) : Json(nullptr); }

std::string percent(std::optional<double> share, double times = 100) {
    return share ? fmt::format("{:.1f}", *share * times) : "-";
}

std::string of(const Share& share) { return share.of > 0 ? fmt::format("{}/{}", share.hits, share.of) : "-"; }

Json json_of(const RuleScore& rule) {
    const auto [low, high] = rule.right.wilson();
    return {{"rule", rule.rule},
            {"verdict_accuracy", or_null(rule.right)},
            {"verdict_accuracy_low", low},
            {"verdict_accuracy_high", high},
            {"verdicts", rule.right.of},
            {"false_alarms", rule.false_alarms.hits},
            {"controls", rule.false_alarms.of},
            {"abstained_correctly", rule.abstained_correctly.hits},
            {"adversarial", rule.abstained_correctly.of},
            {"abstained_wrongly", rule.abstained_wrongly.hits},
            {"advice_regret_points_mean", or_null(mean_of(rule.regrets), 100)},
            {"advice_regret_points_max", or_null(quantile_of(rule.regrets, 1), 100)}};
}

Json json_of(const std::vector<Predicted>& all) {
    Json rows = Json::array();
    for (const Predicted& one : all)
        rows.push_back({{"of", one.what},
                        {"predicted", one.predicted.median},
                        {"low", one.predicted.low},
                        {"high", one.predicted.high},
                        {"real", one.real}});
    return rows;
}

/// What the truth measured of each change.
Json measured_json(const Truth& truth) {
    Json rows = Json::array();
    for (const MeasuredGain& measured : truth.gains)
        rows.push_back({{"of", measured.key},
                        {"median", measured.gain.median},
                        {"low", measured.gain.low},
                        {"high", measured.gain.high},
                        {"rounds", measured.rounds}});
    return rows;
}

Json json_of(const TunedCase& tuned) {
    return {{"chosen", to_string(tuned.chosen)},
            {"best", to_string(tuned.best)},
            {"effect", tuned.effect},
            {"regret", tuned.regret},
            {"steps", tuned.steps_used},
            {"separated", tuned.separated},
            {"peak_bytes", tuned.peak_bytes}};
}

Json json_of(const Scored& scored) {
    Json answers = Json::array();
    for (const Answer& answer : scored.answers)
        answers.push_back({{"rule", answer.rule},
                           {"verdict", to_string(answer.verdict)},
                           {"abstained", answer.abstained ? Json(*answer.abstained) : Json(nullptr)},
                           {"right", scored.truth ? Json(scored.is_right(answer)) : Json(nullptr)},
                           {"advice", answer.advice ? Json(to_string(*answer.advice)) : Json(nullptr)},
                           {"real_gain", or_null(answer.real_gain)},
                           {"regret_points", or_null(answer.regret, 100)}});
    return {{"case", scored.of.name},
            {"kind", scored.of.kind},
            {"truth", scored.truth ? Json(words_of(scored.truth->verdicts)) : Json(nullptr)},
            {"measured_gains", scored.truth ? measured_json(*scored.truth) : Json::array()},
            {"control", scored.truth && is_control(*scored.truth)},
            {"answers", answers},
            {"gains", json_of(scored.gains)},
            {"settings_batches_per_s", json_of(scored.cells)},
            {"one_line_batches_per_s", json_of(scored.one_line_cells)},
            {"speed", scored.speed > 0 ? Json(scored.speed) : Json(nullptr)},
            {"settings_peak_bytes", json_of(scored.peaks)},
            {"tuned", scored.tuned ? json_of(*scored.tuned) : Json(nullptr)},
            {"gap_points", or_null(scored.gap)},
            {"error", scored.error}};
}

}   // namespace

std::string line_of(const Scored& scored) {
    const Answer& ours = scored.answers.front();
    const std::string said =
        ours.abstained ? "abstained (" + *ours.abstained + ")" : std::string{to_string(ours.verdict)};
    if (scored.of.kind == "adversarial")
        return fmt::format("{:<28} {:<5} {}", scored.of.name,
                           ours.declined() && scored.error.empty() ? "right" : "WRONG", said);
    if (!scored.truth)
        return fmt::format("{:<28} no truth measured: {}", scored.of.name, said);
    std::string line = fmt::format("{:<28} {:<5} {} (truth: {}), regret {} points", scored.of.name,
                                   scored.is_right(ours) ? "right" : "WRONG", said,
                                   fmt::join(words_of(scored.truth->verdicts), ", "), percent(ours.regret));
    if (const auto& tuned = scored.tuned)
        line +=
            fmt::format("; tuned to {}: {} % behind {}, {} steps{}", to_string(tuned->chosen), percent(tuned->regret),
                        to_string(tuned->best), tuned->steps_used, tuned->separated ? "" : ", no clear winner");
    return scored.error.empty() ? line : line + "; " + scored.error;
}

std::string table_of(const Score& score) {
    std::string text = fmt::format("{} cases, {} not measured\n\n{:<30} {:>8} {:>14} {:>12} {:>10} {:>10} {:>20}\n",
                                   score.cases, score.not_measured, "rule", "right %", "95 % interval", "false alarms",
                                   "abstained", "wrongly", "regret mean / max");
    for (const RuleScore& rule : score.rules) {
        const auto [low, high] = rule.right.wilson();
        text +=
            fmt::format("{:<30} {:>8} {:>14} {:>12} {:>10} {:>10} {:>20}\n", rule.rule,
                        rule.right.of > 0 ? percent(rule.right.value()) : "-",
                        fmt::format("{:.0f} - {:.0f}", 100 * low, 100 * high), of(rule.false_alarms),
                        of(rule.abstained_correctly), of(rule.abstained_wrongly),
                        fmt::format("{} / {}", percent(mean_of(rule.regrets)), percent(quantile_of(rule.regrets, 1))));
    }
    text += fmt::format(
        "\nwhat-if: mean error {} %, 90th percentile {} % of {} settings; {} of the 90 % intervals hold the truth\n",
        percent(mean_of(score.whatif_errors)), percent(quantile_of(score.whatif_errors, 0.9)),
        score.whatif_errors.size(), of(score.intervals));
    if (const auto& mean = score.whatif_error_mean)
        text += fmt::format(
            "         by drawing cases, the mean is {:.1f} to {:.1f} %; the rule of one line: mean error {} %\n",
            100 * mean->first, 100 * mean->second, percent(mean_of(score.one_line_errors)));
    text += fmt::format("         as ratios to the recorded setting: mean error {} %, 90th percentile {} %\n",
                        percent(mean_of(score.ratio_errors)), percent(quantile_of(score.ratio_errors, 0.9)));
    text += fmt::format("gains:   mean error {} points of {} changes; {} of the 90 % intervals hold the truth\n",
                        percent(mean_of(score.gain_errors)), score.gain_errors.size(), of(score.gain_intervals));
    text += fmt::format("memory:  mean error of the peak {} %, largest {} %, of {} settings\n",
                        percent(mean_of(score.peak_errors)), percent(quantile_of(score.peak_errors, 1)),
                        score.peak_errors.size());
    text +=
        fmt::format("tuner:   regret mean {} %, 95th percentile {} %; {:.0f} steps on average, in time {}; budget kept "
                    "{}\n",
                    percent(mean_of(score.tuner_regrets)), percent(quantile_of(score.tuner_regrets, 0.95)),
                    mean_of(score.tuner_steps).value_or(0), of(score.tuner_in_time), of(score.budgets_kept));
    text +=
        fmt::format("right:   {}, {}, {} where the largest gain leads by less than 5 points, 15, more; "
                    "{} right words in all\n",
                    of(score.right_by_gap[0]), of(score.right_by_gap[1]), of(score.right_by_gap[2]), score.right_words);
    text += "\nright answer      said              cases\n";
    for (const auto& [pair, count] : score.confusion)
        text += fmt::format("{:<17} {:<17} {:>5}{}\n", pair.first, pair.second, count,
                            pair.first == pair.second ? "" : "  wrong");
    return text;
}

std::string json_of(const Score& score, const JsonHead& head) {
    Json json = json_document("drawpoint.accuracy/1", head, this_machine());
    json["cases"] = score.cases;
    json["not_measured"] = score.not_measured;
    Json baselines = Json::array();
    for (std::size_t i = 0; i < score.rules.size(); ++i) {
        Json rule = json_of(score.rules[i]);
        if (i == 0) {
            rule.erase("rule");
            json.update(rule);
        } else {
            baselines.push_back(std::move(rule));
        }
    }
    json["whatif_mape"] = or_null(mean_of(score.whatif_errors));
    json["whatif_p90"] = or_null(quantile_of(score.whatif_errors, 0.9));
    const auto& mean = score.whatif_error_mean;
    json["whatif_mape_low"] = mean ? Json(mean->first) : Json(nullptr);
    json["whatif_mape_high"] = mean ? Json(mean->second) : Json(nullptr);
    json["one_line_mape"] = or_null(mean_of(score.one_line_errors));
    json["right_words"] = score.right_words;
    json["right_by_gap"] = Json::array();
    for (const Share& share : score.right_by_gap)
        json["right_by_gap"].push_back({{"right", share.hits}, {"cases", share.of}});
    json["whatif_ratio_mape"] = or_null(mean_of(score.ratio_errors));
    json["whatif_ratio_p90"] = or_null(quantile_of(score.ratio_errors, 0.9));
    json["whatif_settings"] = score.whatif_errors.size();
    json["interval_coverage"] = or_null(score.intervals);
    json["gain_error_points_mean"] = or_null(mean_of(score.gain_errors), 100);
    json["gain_interval_coverage"] = or_null(score.gain_intervals);
    json["peak_error_mean"] = or_null(mean_of(score.peak_errors));
    json["peak_error_max"] = or_null(quantile_of(score.peak_errors, 1));
    json["tuner_regret_mean"] = or_null(mean_of(score.tuner_regrets));
    json["tuner_regret_p95"] = or_null(quantile_of(score.tuner_regrets, 0.95));
    json["tuner_steps_mean"] = or_null(mean_of(score.tuner_steps));
    json["tuner_in_time"] = or_null(score.tuner_in_time);
    json["tuner_budgets_kept"] = or_null(score.budgets_kept);
    json["confusion"] = Json::array();
    for (const auto& [pair, count] : score.confusion)
        json["confusion"].push_back({{"truth", pair.first}, {"said", pair.second}, {"cases", count}});
    json["baselines"] = std::move(baselines);
    json["rows"] = Json::array();
    for (const Scored& scored : score.scored)
        json["rows"].push_back(json_of(scored));
    return json_text(json);
}

}   // namespace drawpoint::bench
