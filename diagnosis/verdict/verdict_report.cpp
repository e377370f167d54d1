#include <drawpoint/diagnosis/verdict/verdict_report.hpp>

#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {
namespace {

std::vector<std::string_view> words_of(const std::vector<Verdict>& verdicts) {
    std::vector<std::string_view> words;
    for (const Verdict verdict : verdicts)
        words.push_back(to_string(verdict));
    return words;
}

std::string replayed_text(const Diagnosis& diagnosis) {
    return fmt::format("measured {:.4g} batches/s; simulating the same setting gives {:.4g}: {:.1f} % of a step's time "
                       "{}",
                       diagnosis.batches_per_s, diagnosis.replayed_batches_per_s, 100 * std::abs(diagnosis.unexplained),
                       diagnosis.unexplained >= 0 ? "is not explained" : "too much");
}

nlohmann::ordered_json gain_json(const Intervention& change) {
    return {{"change", change.change},
            {"key", change.key()},
            {"verdict", change.lever == Lever::cores ? nlohmann::ordered_json(nullptr)
                                                     : nlohmann::ordered_json(to_string(change.verdict))},
            {"can_be_set", change.can_be_set()},
            {"predicted_gain", change.gain.median},
            {"low", change.gain.low},
            {"high", change.gain.high}};
}

}   // namespace

std::string gain_text(const Interval& gain, bool with_interval) {
    return with_interval ? fmt::format("{:+.0f} % ({:.0f} … {:.0f} %)", gain.median * 100 + 0.0, gain.low * 100 + 0.0,
                                       gain.high * 100 + 0.0)
                         : fmt::format("{:+.0f} %", gain.median * 100 + 0.0);
}

std::string verdict_text(const Diagnosis& diagnosis) {
    const std::string_view word = to_string(diagnosis.verdict);
    if (diagnosis.abstained)
        return fmt::format("{} (no verdict: {})", word, printable(*diagnosis.abstained));
    return diagnosis.co_verdicts.empty()
               ? std::string{word}
               : fmt::format("{}, together with {}", word, fmt::join(words_of(diagnosis.co_verdicts), ", "));
}

std::string advice_text(const Diagnosis& diagnosis) {
    if (diagnosis.advice)
        return fmt::format("{}: {}", printable(diagnosis.advice->change), gain_text(diagnosis.advice->gain));
    return diagnosis.abstained                     ? "none"
           : diagnosis.verdict == Verdict::warm_up ? "a longer run, or a loader that outlives its passes"
                                                   : "leave the settings as they are: no change of them gains 3 %";
}

TextStyle style_of_gain(const Interval& gain) noexcept {
    return gain.low > 0 ? TextStyle::green : gain.high < 0 ? TextStyle::red : TextStyle::plain;
}

namespace {

std::string styled_verdict(const Diagnosis& diagnosis, TextOptions options) {
    return styled(verdict_text(diagnosis), diagnosis.abstained ? TextStyle::dim : TextStyle::bold, options.colour);
}

std::string styled_advice(const Diagnosis& diagnosis, TextOptions options) {
    return styled(advice_text(diagnosis), diagnosis.advice ? style_of_gain(diagnosis.advice->gain) : TextStyle::plain,
                  options.colour);
}

}   // namespace

std::string to_text(const Diagnosis& diagnosis, TextOptions options) {
    std::string text = fmt::format("verdict: {}\n\n", styled_verdict(diagnosis, options));
    for (const std::string& line : diagnosis.evidence)
        text += fmt::format("  - {}\n", line);
    if (!diagnosis.blame_rows.empty()) {
        TextTable table{.titles = {"what the steady draws waited for", "time", "share"}};
        for (const BlameRow& row : diagnosis.blame_rows)
            if (row.ns > 0)
                table.rows.push_back({"  " + printable(row.cause), format_duration(static_cast<double>(row.ns) / 1e9),
                                      fmt::format("{:.1f} %", row.share * 100)});
        text += "\n" + to_text(table, options);
    }
    if (!diagnosis.interventions.empty()) {
        TextTable table{.titles = {"what one change alone is predicted to do", "throughput", "90 %"}};
        for (const Intervention& change : diagnosis.interventions)
            table.rows.push_back({"  " + printable(change.change) + (change.can_be_set() ? "" : " *"),
                                  styled(gain_text(change.gain, false), style_of_gain(change.gain), options.colour),
                                  fmt::format("{:.0f} … {:.0f} %", change.gain.low * 100, change.gain.high * 100)});
        text += "\n" + to_text(table, options);
        text += fmt::format("  * hypothetical: no setting does this\n  {}\n", replayed_text(diagnosis));
        if (!diagnosis.assumed_of_scheduler.empty())
            text += fmt::format("  of the recorded machine's scheduler, Linux's defaults are assumed: {}\n",
                                diagnosis.assumed_of_scheduler);
    }
    text += fmt::format("\nadvice: {}\n", styled_advice(diagnosis, options));
    if (!diagnosis.how_to_refute.empty())
        text += fmt::format("to refute it: {}\n", printable(diagnosis.how_to_refute));
    return text;
}

std::string to_markdown(const Diagnosis& diagnosis) {
    const auto cell = [](std::string_view name) {
        std::string text;
        for (const char c : printable(name))
            text += std::string_view{"\\|<&[]*_`"}.find(c) != std::string_view::npos ? std::string{'\\', c}
                                                                                     : std::string(1, c);
        return text;
    };
    std::string text = fmt::format("**Verdict**: {}\n\n", cell(verdict_text(diagnosis)));
    for (const std::string& line : diagnosis.evidence)
        text += fmt::format("- {}\n", cell(line));
    text += "\n| the steady draws waited for | time | share |\n| --- | ---: | ---: |\n";
    for (const BlameRow& row : diagnosis.blame_rows)
        if (row.ns > 0)
            text += fmt::format("| {} | {} | {:.1f} % |\n", cell(row.cause),
                                format_duration(static_cast<double>(row.ns) / 1e9), row.share * 100);
    if (!diagnosis.interventions.empty()) {
        text +=
            "\n| one change alone | a setting | predicted gain | low | high |\n| --- | --- | ---: | ---: | ---: |\n";
        for (const Intervention& change : diagnosis.interventions)
            text += fmt::format("| {} | {} | {:.1f} % | {:.1f} % | {:.1f} % |\n", cell(change.change),
                                change.can_be_set() ? "yes" : "no", change.gain.median * 100, change.gain.low * 100,
                                change.gain.high * 100);
    }
    text += fmt::format("\n**Advice**: {}\n", cell(advice_text(diagnosis)));
    if (!diagnosis.how_to_refute.empty())
        text += fmt::format("\n**To refute it**: {}\n", cell(diagnosis.how_to_refute));
    return text;
}

std::string verdict_lines(const Diagnosis& diagnosis, TextOptions options) {
    std::string text = fmt::format("why the draw waits: {}\n", styled_verdict(diagnosis, options));
    if (!diagnosis.abstained)
        text += fmt::format("  predicted: {}\n", styled_advice(diagnosis, options));
    return text;
}

nlohmann::ordered_json to_json(const Diagnosis& diagnosis, const JsonHead& head, const Machine& machine) {
    using Json = nlohmann::ordered_json;
    Json document = json_document("drawpoint.diagnosis/1", head, machine);
    document["verdict"] = to_string(diagnosis.verdict);
    document["co_verdicts"] = words_of(diagnosis.co_verdicts);
    document["abstained"] = diagnosis.abstained ? Json(*diagnosis.abstained) : Json();
    document["more_steps_needed"] = diagnosis.more_steps_needed;
    document["evidence"] = diagnosis.evidence;
    document["interventions"] = Json::array();
    for (const Intervention& change : diagnosis.interventions)
        document["interventions"].push_back(gain_json(change));
    document["advice"] = nullptr;
    if (diagnosis.advice) {
        document["advice"] = gain_json(*diagnosis.advice);
        document["advice"]["how_to_refute"] = diagnosis.how_to_refute;
    }
    document["run"] = {{"steady_steps", diagnosis.steady_steps},
                       {"batches_per_s", diagnosis.batches_per_s},
                       {"replayed_batches_per_s",
                        diagnosis.replayed_batches_per_s > 0 ? Json(diagnosis.replayed_batches_per_s) : Json()},
                       {"unexplained", diagnosis.replayed_batches_per_s > 0 ? Json(diagnosis.unexplained) : Json()},
                       {"assumed_of_scheduler", diagnosis.assumed_of_scheduler},
                       {"draw_share", diagnosis.draw_share}};
    document["blame"] = Json::array();
    for (const BlameRow& row : diagnosis.blame_rows)
        document["blame"].push_back(
            {{"cause", row.cause}, {"total_s", static_cast<double>(row.ns) / 1e9}, {"share", row.share}});
    document["blame_max_residual_ns"] = diagnosis.blame.max_residual_ns;
    document["trust"] = {{"trusted", diagnosis.trust.trusted},
                         {"interference_share", diagnosis.trust.interference_share},
                         {"steal_share", diagnosis.trust.steal_share},
                         {"reasons", diagnosis.trust.texts()}};
    return document;
}

}   // namespace drawpoint
