#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/instrumentation/report/json.hpp>

namespace drawpoint {

/// For a terminal: a table of batches a second by workers and depth for each order and batch size, shaded by speed, and the
/// recommendation. UTF-8, lines of at most 100 columns while depths fit. Any thread.
[[nodiscard]] std::string to_text(const Whatif&);

/// As `drawpoint.whatif/1`.
[[nodiscard]] nlohmann::ordered_json to_json(const Whatif&, const JsonHead&, const Machine&);

/// A page that needs nothing else: SVG charts and all rows as a table. `title`: any text, escaped. Any thread.
[[nodiscard]] std::string to_html(const Whatif&, std::string_view title);

}   // namespace drawpoint
