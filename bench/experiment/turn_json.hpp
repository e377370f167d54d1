#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/bench/experiment/contender.hpp>

namespace drawpoint::bench {

/// What the process of a row prints: a document of schema `drawpoint.turn/1`.
struct RowTurn {
    std::string row;
    std::vector<Metric> metrics;
    Turn turn;   ///< with a value, and a place in `by_item`, for each metric
    std::optional<std::string> digest;
    bool optimised = true;
};

[[nodiscard]] nlohmann::ordered_json turn_to_json(const RowTurn&);
/// Throws nlohmann::json::exception for another document.
[[nodiscard]] RowTurn turn_from_json(const nlohmann::json&);

/// "seconds", "count", "bytes" or "number".
[[nodiscard]] const char* unit_name(Metric::Unit) noexcept;
/// Throws nlohmann::json::exception for another name.
[[nodiscard]] Metric::Unit unit_in(const std::string& name);

}   // namespace drawpoint::bench
