#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <drawpoint/instrumentation/report/text.hpp>
#include <drawpoint/instrumentation/text/format.hpp>

namespace drawpoint::sentences {

using Sentences = std::vector<std::string>;
using Line = std::pair<std::string, Sentences>;   ///< a label and its text

inline constexpr std::string_view unknown = "-";

/// "2.9 %" of a share of 1.
[[nodiscard]] std::string percent(std::optional<double> share);
/// "1,513" or, below a hundred, "14.6".
[[nodiscard]] std::string rate(std::optional<double> per_s);
/// "1 step", "2 batches".
[[nodiscard]] std::string counted(std::integral auto count, std::string_view noun) {
    return fmt::format("{} {}{}", format_count(static_cast<std::int64_t>(count)), noun,
                       count == 1                ? ""
                       : noun.ends_with("batch") ? "es"
                                                 : "s");
}

/// The lines at the top of the report.
[[nodiscard]] std::vector<Line> headline(const Summary&, TextOptions);
/// Background information, below the numbers.
[[nodiscard]] std::vector<Line> footing(const Summary&);
[[nodiscard]] std::vector<Line> error_lines(const Summary&);
[[nodiscard]] Sentences recording_sentences(const Summary&);
[[nodiscard]] Sentences damage_sentences(const Summary&);

}   // namespace drawpoint::sentences
