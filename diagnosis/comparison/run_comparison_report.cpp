#include <drawpoint/diagnosis/comparison/run_comparison.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "diagnosis/comparison/row_texts.hpp"
#include "diagnosis/comparison/signed_duration.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {

std::string interval_text(const WaterfallRow& row) {
    if (!row.interval_ns)
        return "";
    return fmt::format("{} … {}", signed_duration(row.interval_ns->low), signed_duration(row.interval_ns->high));
}

namespace {

/// From the first run's wall time to the second one's. Damaged recordings may hold any stamps.
std::int64_t longer_ns(const RunComparison& found) {
    return static_cast<std::int64_t>(wrapping_difference(found.b_wall_ns, found.a_wall_ns));
}

}   // namespace

std::string share_text(const RunComparison& found, const WaterfallRow& row) {
    const std::int64_t all = longer_ns(found);
    if (all == 0)
        return "";
    return fmt::format("{:.0f} %", 100 * static_cast<double>(row.difference_ns) / static_cast<double>(all));
}

std::string headline(const RunComparison& found) {
    const double ratio =
        found.a_wall_ns > 0 ? static_cast<double>(found.b_wall_ns) / static_cast<double>(found.a_wall_ns) : 0;
    return fmt::format("wall time {} -> {}, {} ({:.3f} times); steps {} -> {}",
                       format_duration(static_cast<double>(found.a_wall_ns) * 1e-9),
                       format_duration(static_cast<double>(found.b_wall_ns) * 1e-9),
                       signed_duration(static_cast<double>(longer_ns(found))), ratio,
                       format_count(static_cast<std::int64_t>(found.a_steps)),
                       format_count(static_cast<std::int64_t>(found.b_steps)));
}

namespace {

std::string or_none(const std::string& text) { return text.empty() ? "none" : printable(text); }

}   // namespace

std::string to_text(const RunComparison& found, TextOptions options) {
    std::string text = headline(found) + "\n\n";
    if (!found.differences.empty())
        text += "not the same in both runs:\n";
    for (const RunDifference& one : found.differences)
        text += fmt::format("  {}: {} -> {}\n", printable(one.name), or_none(one.a), or_none(one.b));
    TextTable table{.titles = {"phase", "what", "before", "after", "difference", "of all", "90 % interval"},
                    .align = "llrrrrl",
                    .spare = {5},
                    .name = 1};
    for (const WaterfallRow& row : found.rows) {
        const bool is_sure = row.interval_ns && (row.interval_ns->low > 0 || row.interval_ns->high < 0);
        const TextStyle style = !is_sure                    ? TextStyle::plain
                                : row.interval_ns->high < 0 ? TextStyle::green
                                                            : TextStyle::red;
        table.rows.push_back({std::string{row.phase}, printable(row.name),
                              format_duration(static_cast<double>(row.a_ns) * 1e-9),
                              format_duration(static_cast<double>(row.b_ns) * 1e-9),
                              styled(signed_duration(static_cast<double>(row.difference_ns)), style, options.colour),
                              share_text(found, row), interval_text(row)});
    }
    table.rows.push_back({"", "sum", format_duration(static_cast<double>(found.a_wall_ns) * 1e-9),
                          format_duration(static_cast<double>(found.b_wall_ns) * 1e-9),
                          signed_duration(static_cast<double>(longer_ns(found))), "", ""});
    text += (found.differences.empty() ? "" : "\n") + to_text(table, options);
    return text + "\nOne run of each says nothing about chance between runs; drawpoint gate does.\n";
}

std::string to_markdown(const RunComparison& found) {
    const auto cell = [](const std::string& text) {
        std::string escaped;
        for (const char c : printable(text))
            escaped += c == '|' ? "\\|" : std::string(1, c);
        return escaped;
    };
    std::string text = headline(found) + "\n\n";
    if (!found.differences.empty())
        text += "| not the same | before | after |\n|---|---|---|\n";
    for (const RunDifference& one : found.differences)
        text += fmt::format("| {} | {} | {} |\n", cell(one.name), cell(one.a), cell(one.b));
    text +=
        "\n| phase | what | before | after | difference | of all | 90 % interval |\n|---|---|---|---|---|---|---|\n";
    for (const WaterfallRow& row : found.rows)
        text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", row.phase, cell(row.name),
                            format_duration(static_cast<double>(row.a_ns) * 1e-9),
                            format_duration(static_cast<double>(row.b_ns) * 1e-9),
                            signed_duration(static_cast<double>(row.difference_ns)), share_text(found, row),
                            interval_text(row));
    return text;
}

nlohmann::ordered_json to_json(const RunComparison& found, const JsonHead& head, const Machine& machine) {
    using Json = nlohmann::ordered_json;
    Json document = json_document("drawpoint.run-comparison/1", head, machine);
    document["a"] = {{"wall_ns", found.a_wall_ns}, {"steps", found.a_steps}};
    document["b"] = {{"wall_ns", found.b_wall_ns}, {"steps", found.b_steps}};
    document["differences"] = Json::array();
    for (const RunDifference& one : found.differences)
        document["differences"].push_back({{"name", one.name}, {"a", one.a}, {"b", one.b}});
    document["rows"] = Json::array();
    for (const WaterfallRow& row : found.rows)
        document["rows"].push_back(
            {{"phase", row.phase},
             {"name", row.name},
             {"a_ns", row.a_ns},
             {"b_ns", row.b_ns},
             {"difference_ns", row.difference_ns},
             {"interval_ns",
              row.interval_ns ? Json{{"low", row.interval_ns->low}, {"high", row.interval_ns->high}} : Json(nullptr)}});
    return document;
}

}   // namespace drawpoint
