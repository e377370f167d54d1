#include <drawpoint/diagnosis/whatif/whatif_report.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {
namespace {

std::string setting_text(const LoaderSetting& setting, const LoaderSetting& recorded) {
    return fmt::format("num_workers {}, prefetch_depth {}, order {}{}", setting.num_workers, setting.prefetch_depth,
                       to_string(setting.order),
                       setting.batch_size == recorded.batch_size ? std::string{}
                                                                 : fmt::format(", batch_size {}", setting.batch_size));
}

std::string expected_text(const WhatifRow& row) {
    const Interval& rate = row.prediction.batches_per_s;
    return fmt::format("{:.4g} batches/s ({:.4g} … {:.4g}), waiting for data {:.0f} % of the time, memory up to {}",
                       rate.median, rate.low, rate.high, row.prediction.draw_share.median * 100,
                       format_bytes(static_cast<double>(row.prediction.peak_bytes)));
}

}   // namespace

std::string to_text(const Whatif& found) {
    constexpr std::array<std::string_view, 5> shades{" ", "░", "▒", "▓", "█"};
    const WhatifRow& chosen = found.rows[found.recommended];
    std::string text = fmt::format("recorded: {}\n  measured: {:.4g} batches/s, waiting for data {:.0f} % of the time\n"
                                   "  (simulating the same setting gives {:.4g}, {:.4g} … {:.4g})\n",
                                   setting_text(found.recorded, found.recorded), found.recorded_batches_per_s,
                                   found.recorded_draw_share * 100, found.as_recorded.batches_per_s.median,
                                   found.as_recorded.batches_per_s.low, found.as_recorded.batches_per_s.high);
    const double most = std::max(found.rows[found.best].samples_per_s, 1e-12);
    const WhatifRow* last = nullptr;
    for (const WhatifRow& row : found.rows) {
        const auto& now = row.setting;
        const bool new_table = !last || last->setting.batch_size != now.batch_size || last->setting.order != now.order;
        if (new_table) {
            text += last ? "\n" : "";
            text += fmt::format("\nbatches/s, order {}, batch_size {}\n  num_workers  prefetch_depth\n             ",
                                to_string(now.order), now.batch_size);
            for (const WhatifRow& other : found.rows)
                if (other.setting.batch_size == now.batch_size && other.setting.order == now.order &&
                    other.setting.num_workers == now.num_workers)
                    text += fmt::format("{:>9}  ", other.setting.prefetch_depth);
        }
        if (new_table || last->setting.num_workers != now.num_workers)
            text += fmt::format("\n  {:>9}  ", now.num_workers);
        const double share = row.samples_per_s / most;
        const auto shade = static_cast<std::size_t>(std::clamp((share - 0.5) * 10, 0.0, 4.0));
        const bool is_chosen = &row == &chosen;
        text += fmt::format("{}{:>7.4g}{}{}", shades[shade], row.prediction.batches_per_s.median,
                            is_chosen      ? ">"
                            : row.recorded ? "*"
                                           : " ",
                            is_chosen && row.recorded ? "* " : "  ");
        last = &row;
    }
    text += "\n\n* recorded   shade: share of the best, from half to all\n"
            "> the cheapest (fewest workers, then least memory) within 2 % of the best\n";
    text += fmt::format("\nrecommended: {}\n  predicted: {}\n", setting_text(chosen.setting, found.recorded),
                        expected_text(chosen));
    for (const Doubt& doubt : found.trust.reasons)
        text += fmt::format("  not to be trusted: {}\n", printable(doubt.text));
    if (found.recommended != found.best)
        text += fmt::format("best: {}\n  predicted: {}\n", setting_text(found.rows[found.best].setting, found.recorded),
                            expected_text(found.rows[found.best]));
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
