#include <drawpoint/diagnosis/whatif/whatif_report.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {
namespace {

std::string setting_text(const LoaderSetting& setting, const LoaderSetting& recorded) {
    return fmt::format("num_workers {}, {} {}, order {}{}", setting.num_workers, prefetch_name(setting.kind),
                       prefetch_of(setting), to_string(setting.order),
                       setting.batch_size == recorded.batch_size ? std::string{}
                                                                 : fmt::format(", batch_size {}", setting.batch_size));
}

std::string waiting_text(double share, TextOptions options) {
    return fmt::format("waiting for data {} of the time",
                       styled(fmt::format("{:.0f} %", share * 100), style_of_draw(share), options.colour));
}

std::string expected_text(const WhatifRow& row, TextOptions options) {
    const Interval& rate = row.prediction.batches_per_s;
    return fmt::format("{:.4g} batches/s ({:.4g} … {:.4g}), {}, memory up to {}", rate.median, rate.low, rate.high,
                       waiting_text(row.prediction.draw_share.median, options),
                       format_bytes(static_cast<double>(row.prediction.peak_bytes)));
}

/// A map of one order and batch size: a row for each number of workers, and as many depths beside each other as fit.
void append_map(std::string& text, const Whatif& found, std::span<const WhatifRow> rows, TextOptions options) {
    constexpr std::array<std::string_view, 5> shades{" ", "░", "▒", "▓", "█"};
    constexpr std::size_t label = 13, marks = 4;   // a shade, and what says that it is recorded or chosen
    const auto rate_of = [](const WhatifRow& row) {
        return fmt::format("{:.4g}", row.prediction.batches_per_s.median);
    };
    std::size_t digits = 7;
    for (const WhatifRow& row : rows)
        digits = std::max(digits, rate_of(row).size());
    const std::size_t cell = digits + marks;
    const double most = std::max(found.rows[found.best].samples_per_s, 1e-12);
    std::vector<std::size_t> depths;
    for (const WhatifRow& row : rows)
        if (row.setting.num_workers == rows.front().setting.num_workers)
            depths.push_back(prefetch_of(row.setting));
    const std::size_t beside = std::max<std::size_t>((std::max(options.width, label) - label) / cell, 1);
    for (std::size_t from = 0; from < depths.size(); from += beside) {
        const auto shown = std::span{depths}.subspan(from, std::min(beside, depths.size() - from));
        text += fmt::format("  num_workers  {}\n             ", prefetch_name(found.recorded.kind));
        for (const std::size_t depth : shown)
            text += fmt::format("{:>{}}  ", depth, digits + 2);
        const WhatifRow* last = nullptr;
        for (const WhatifRow& row : rows) {
            if (std::ranges::find(shown, prefetch_of(row.setting)) == shown.end())
                continue;
            if (!last || last->setting.num_workers != row.setting.num_workers)
                text += fmt::format("\n  {:>9}  ", row.setting.num_workers);
            const double share = row.samples_per_s / most;
            const auto shade = static_cast<std::size_t>(std::clamp((share - 0.5) * 10, 0.0, 4.0));
            const bool is_chosen = &row == &found.rows[found.recommended];
            text += shades[shade];
            text += styled(fmt::format("{:>{}}{}{}", rate_of(row), digits,
                                       is_chosen      ? ">"
                                       : row.recorded ? "*"
                                                      : " ",
                                       is_chosen && row.recorded ? "* " : "  "),
                           is_chosen ? TextStyle::green : TextStyle::plain, options.colour);
            last = &row;
        }
        text += '\n';
    }
}

}   // namespace

std::string to_text(const Whatif& found, TextOptions options) {
    const WhatifRow& chosen = found.rows[found.recommended];
    std::string text =
        fmt::format("recorded: {}\n  measured: {:.4g} batches/s, {}\n"
                    "  (simulating the same setting gives {:.4g}, {:.4g} … {:.4g})\n",
                    setting_text(found.recorded, found.recorded), found.recorded_batches_per_s,
                    waiting_text(found.recorded_draw_share, options), found.as_recorded.batches_per_s.median,
                    found.as_recorded.batches_per_s.low, found.as_recorded.batches_per_s.high);
    for (std::span<const WhatifRow> rows{found.rows}; !rows.empty();) {
        const LoaderSetting& now = rows.front().setting;
        const auto end = std::ranges::find_if(rows, [&](const WhatifRow& row) {
            return row.setting.batch_size != now.batch_size || row.setting.order != now.order;
        });
        const auto count = static_cast<std::size_t>(end - rows.begin());
        text += fmt::format("\nbatches/s, order {}, batch_size {}\n", to_string(now.order), now.batch_size);
        append_map(text, found, rows.first(count), options);
        rows = rows.subspan(count);
    }
    text += "\n* recorded   shade: share of the best, from half to all\n"
            "> the cheapest (fewest workers, then least memory) within 2 % of the best\n";
    text += fmt::format("\nrecommended: {}\n  predicted: {}\n",
                        styled(setting_text(chosen.setting, found.recorded), TextStyle::bold, options.colour),
                        expected_text(chosen, options));
    for (const Doubt& doubt : found.trust.reasons)
        text += fmt::format("  {} {}\n", styled("not to be trusted:", TextStyle::red, options.colour),
                            printable(doubt.text));
    if (found.recommended != found.best)
        text += fmt::format("best: {}\n  predicted: {}\n", setting_text(found.rows[found.best].setting, found.recorded),
                            expected_text(found.rows[found.best], options));
    if (found.on_edge)
        text += "the recommended setting is the largest that was asked for: a larger one may be better\n";
    return text;
}

nlohmann::ordered_json to_json(const Whatif& found, const JsonHead& head, const Machine& machine) {
    using Json = nlohmann::ordered_json;
    const auto row_json = [&](const WhatifRow& row) {
        const Prediction& expected = row.prediction;
        return Json{{"num_workers", row.setting.num_workers},
                    {"prefetch_depth", row.setting.prefetch_depth},
                    {"order", to_string(row.setting.order)},
                    {"batch_size", row.setting.batch_size},
                    {"batches_per_s", expected.batches_per_s.median},
                    {"low", expected.batches_per_s.low},
                    {"high", expected.batches_per_s.high},
                    {"samples_per_s", row.samples_per_s},
                    {"draw_share", expected.draw_share.median},
                    {"p99_draw_s", expected.p99_draw_s.median},
                    {"peak_bytes", expected.peak_bytes},
                    {"on_frontier", row.on_frontier},
                    {"recorded", row.recorded}};
    };
    Json document = json_document("drawpoint.whatif/1", head, machine);
    document["recorded"] = {{"num_workers", found.recorded.num_workers},
                            {"prefetch_depth", found.recorded.prefetch_depth},
                            {"order", to_string(found.recorded.order)},
                            {"batch_size", found.recorded.batch_size},
                            {"batches_per_s", found.recorded_batches_per_s},
                            {"draw_share", found.recorded_draw_share},
                            {"predicted_batches_per_s", found.as_recorded.batches_per_s.median},
                            {"low", found.as_recorded.batches_per_s.low},
                            {"high", found.as_recorded.batches_per_s.high}};
    document["recommended"] = row_json(found.rows[found.recommended]);
    document["best"] = row_json(found.rows[found.best]);
    for (const char* const named : {"recommended", "best"})
        document[named]["trusted"] = found.trust.trusted;
    document["on_edge"] = found.on_edge;
    document["rows"] = Json::array();
    for (const WhatifRow& row : found.rows)
        document["rows"].push_back(row_json(row));
    document["trust"] = {{"trusted", found.trust.trusted},
                         {"interference_share", found.trust.interference_share},
                         {"steal_share", found.trust.steal_share},
                         {"reasons", found.trust.texts()}};
    return document;
}

}   // namespace drawpoint
