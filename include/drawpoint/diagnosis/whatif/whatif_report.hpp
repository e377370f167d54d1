#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint {

// The result must have a row, as all results of `whatif` do. Any thread.

/// For a terminal: for each order and batch size a table of batches per second by workers and depth, each with a
/// character that shows its speed ("░▒▓█"); then the recommendation. UTF-8; depths that do not fit beside the others
/// follow below them; sentences are not wrapped.
[[nodiscard]] std::string to_text(const Whatif&, TextOptions = {});

/// JSON of the schema `drawpoint.whatif/1`, which docs/formats.md describes.
[[nodiscard]] nlohmann::ordered_json to_json(const Whatif&, const JsonHead&, const Machine&);

/// A self-contained HTML page: SVG charts, and all rows as a table. `title` is any text; it is escaped.
[[nodiscard]] std::string to_html(const Whatif&, std::string_view title);

/// The map of batches per second by workers and depth, for the recommended order and batch size, as a file of SVG.
[[nodiscard]] std::string to_svg(const Whatif&);

}   // namespace drawpoint
