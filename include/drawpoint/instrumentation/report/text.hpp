#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint {

struct TextOptions {
    bool colour = false;   ///< ANSI bold and dim; the text is the same without
};
static_assert(std::is_trivially_destructible_v<TextOptions>);

/// The report for a terminal: first what the run was and what drawing cost it, then its tables. UTF-8, lines of at most
/// 120 columns unless a name is longer; names from outside are `printable`. Any thread.
[[nodiscard]] std::string to_text(const Summary&, TextOptions = {});

/// The same as Markdown tables.
[[nodiscard]] std::string to_markdown(const Summary&);

/// The rows alone as CSV, numbers in seconds in the shortest form that reads back exactly, unknown ones empty.
[[nodiscard]] std::string to_csv(const Summary&);

/// `text` with control characters and broken UTF-8 written as `\n`, `\t` or `\x1b`, so that no file name can act on a
/// terminal or break a line. Any thread.
[[nodiscard]] std::string printable(std::string_view text);

/// "9.10 s", "12.3 ms", "456 µs", "0 s": three significant digits. Any thread.
[[nodiscard]] std::string format_duration(double seconds);

/// "19.3 MB", "512 B": three significant digits, powers of ten. Any thread.
[[nodiscard]] std::string format_bytes(double bytes);

/// "1,234,567". Any thread.
[[nodiscard]] std::string format_count(std::int64_t count);

}   // namespace drawpoint
