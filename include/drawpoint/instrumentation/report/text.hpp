#pragma once

#include <string>
#include <type_traits>

#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {

struct TextOptions {
    bool colour = false;   ///< ANSI bold and dim; the text is the same without
};
static_assert(std::is_trivially_destructible_v<TextOptions>);

/// The report for a terminal: first a description of the run and the cost of drawing, then the tables. UTF-8, lines of
/// at most 120 columns unless a name is longer; names from outside are made `printable`. Any thread.
[[nodiscard]] std::string to_text(const Summary&, TextOptions = {});

/// The same as Markdown tables.
[[nodiscard]] std::string to_markdown(const Summary&);

/// The rows only, as CSV: numbers in seconds, in the shortest form that reads back exactly; unknown ones are empty.
[[nodiscard]] std::string to_csv(const Summary&);

}   // namespace drawpoint
