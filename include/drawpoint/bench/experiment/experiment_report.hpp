#pragma once

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/bench/experiment/experiment.hpp>
#include <drawpoint/bench/experiment/gate.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint::bench {

/// "slower by 2.5 % (1.2 … 3.8)", "no difference shown, at most 1.1 %", or why nothing can be said.
[[nodiscard]] std::string to_text(const Comparison&);

/// Medians of every metric by contender, ratios with their bounds, and what can be said; then how it was measured.
[[nodiscard]] std::string to_text(const Measurements&, std::span<const Comparison>, double error, TextOptions = {});

/// Schema `drawpoint.experiment/1`, which docs/formats.md describes: the comparisons and every round.
[[nodiscard]] nlohmann::ordered_json to_json(const Measurements&, std::span<const Comparison>, double error,
                                             const JsonHead&, const Machine&);

/// The measurements of such a document. Throws std::invalid_argument saying what is wrong with it.
[[nodiscard]] Measurements measurements_from_json(const nlohmann::json& document);

/// False alarms and power, one line each.
[[nodiscard]] std::string to_text(std::span<const GatePower>);
[[nodiscard]] nlohmann::ordered_json to_json(std::span<const GatePower>);

}   // namespace drawpoint::bench
