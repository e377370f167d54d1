#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint {

/// Text for a terminal: the verdict, its evidence, the predicted gain of each change, the advice. UTF-8; sentences are
/// not wrapped. Names from the recording pass through `printable`. Any thread.
[[nodiscard]] std::string to_text(const Diagnosis&, TextOptions = {});

/// The same as Markdown.
[[nodiscard]] std::string to_markdown(const Diagnosis&);

/// One or two lines that begin a report: why the draw waits, and what the advised change is predicted to gain.
[[nodiscard]] std::string verdict_lines(const Diagnosis&, TextOptions = {});

/// "decode, together with workers", or why there is no verdict.
[[nodiscard]] std::string verdict_text(const Diagnosis&);
/// "num_workers 2 -> 4: +41 % (35 … 47 %)", or what to do instead.
[[nodiscard]] std::string advice_text(const Diagnosis&);

/// JSON of the schema `drawpoint.diagnosis/1`, which docs/formats.md describes.
[[nodiscard]] nlohmann::ordered_json to_json(const Diagnosis&, const JsonHead&, const Machine&);

/// "+41 %" or "+41 % (35 … 47 %)".
[[nodiscard]] std::string gain_text(const Interval&, bool with_interval = true);

/// Green if all of the interval is a gain, red if all of it is a loss. Any thread.
[[nodiscard]] TextStyle style_of_gain(const Interval&) noexcept;

}   // namespace drawpoint
