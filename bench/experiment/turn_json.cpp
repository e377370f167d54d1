#include "bench/experiment/turn_json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>

#include <nlohmann/json.hpp>

namespace drawpoint::bench {

namespace {

constexpr std::array unit_names{"seconds", "count", "bytes", "number"};
constexpr auto nothing = std::numeric_limits<double>::quiet_NaN();

double number_or_nothing(const nlohmann::json& value) { return value.is_null() ? nothing : value.get<double>(); }

}   // namespace

const char* unit_name(Metric::Unit unit) noexcept { return unit_names[static_cast<std::size_t>(unit)]; }

Metric::Unit unit_in(const std::string& name) {
    const auto found =
        std::ranges::find(unit_names, std::string_view{name}, [](const char* unit) { return std::string_view{unit}; });
    if (found == unit_names.end())
        throw nlohmann::json::other_error::create(501, "no unit " + name, nullptr);
    return static_cast<Metric::Unit>(found - unit_names.begin());
}

nlohmann::ordered_json turn_to_json(const RowTurn& it) {
    nlohmann::ordered_json document{{"schema", "drawpoint.turn/1"}, {"row", it.row}, {"optimised", it.optimised}};
    if (it.digest)
        document["digest"] = *it.digest;
    document["metrics"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < it.metrics.size(); ++i) {
        const Metric& metric = it.metrics[i];
        nlohmann::ordered_json row{{"name", metric.name},
                                   {"unit", unit_name(metric.unit)},
                                   {"compared", metric.compared},
                                   {"value", it.turn.values[i]}};   // what is not a number becomes null
        if (metric.by_item)
            row["items"] = it.turn.by_item[i];
        document["metrics"].push_back(std::move(row));
    }
    return document;
}

RowTurn turn_from_json(const nlohmann::json& document) {
    if (document.at("schema") != "drawpoint.turn/1" || document.at("metrics").empty())
        throw nlohmann::json::other_error::create(501, "it is no turn of a row", nullptr);
    RowTurn it{.row = document.at("row"), .optimised = document.at("optimised")};
    if (document.contains("digest"))
        it.digest = document["digest"].get<std::string>();
    for (const nlohmann::json& row : document.at("metrics")) {
        it.metrics.push_back({.name = row.at("name"),
                              .unit = unit_in(row.at("unit")),
                              .compared = row.at("compared"),
                              .by_item = row.contains("items")});
        it.turn.values.push_back(number_or_nothing(row.at("value")));
        std::vector<float>& items = it.turn.by_item.emplace_back();
        if (it.metrics.back().by_item)
            for (const nlohmann::json& item : row["items"])
                items.push_back(static_cast<float>(number_or_nothing(item)));
    }
    return it;
}

}   // namespace drawpoint::bench
