#pragma once

#include <string>
#include <string_view>

#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint {

/// The report for a terminal: first a description of the run and the cost of drawing, then the tables. UTF-8; names
/// from outside are made `printable`. Any thread.
[[nodiscard]] std::string to_text(const Summary&, TextOptions = {});

/// The report on one screen of 24 lines: at most 22, in 80 columns and more. It begins with `verdict`, which is lines
/// of text, or empty. Any thread.
[[nodiscard]] std::string to_short_text(const Summary&, std::string_view verdict, TextOptions = {});

/// The same as Markdown tables.
[[nodiscard]] std::string to_markdown(const Summary&);

/// The rows only, as CSV: numbers in seconds, in the shortest form that reads back exactly; unknown ones are empty.
[[nodiscard]] std::string to_csv(const Summary&);

}   // namespace drawpoint
