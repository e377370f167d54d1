#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <drawpoint/bench/experiment/experiment.hpp>

namespace drawpoint::bench {

/// Whether a contender has a value by a metric in every round.
[[nodiscard]] bool has_value(const Measurements&, std::size_t contender, std::size_t metric);
/// Whether it is a number of something, which other processes do not change.
[[nodiscard]] constexpr bool is_counted(Metric::Unit unit) noexcept {
    return unit == Metric::Unit::count || unit == Metric::Unit::bytes;
}
/// "12.3 ms", "4.5 MB", "1,234".
[[nodiscard]] std::string value_text(double value, Metric::Unit);
/// "1.025 (1.012 … 1.038)", without bounds if there are none.
[[nodiscard]] std::string ratio_text(const Interval& ratio);
/// Text for a cell of a Markdown table.
[[nodiscard]] std::string markdown_cell(std::string text);
/// The comparison of a contender by a metric; null: there is none.
[[nodiscard]] const Comparison* find(std::span<const Comparison>, std::size_t contender, std::size_t metric);

}   // namespace drawpoint::bench
