#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/report/json.hpp>

namespace drawpoint {

/// For a terminal: the verdict, its evidence, what each change is predicted to gain, the advice. UTF-8, lines of at most 120
/// columns unless a name is longer; names from outside are `printable`. Any thread.
[[nodiscard]] std::string to_text(const Diagnosis&);

/// The same as Markdown.
[[nodiscard]] std::string to_markdown(const Diagnosis&);

/// Why the draw waits and what is predicted, in one line or two: what a report ends with.
[[nodiscard]] std::string verdict_lines(const Diagnosis&);

/// As `drawpoint.diagnosis/1`: what cli.md says, and `run`, `blame`, `trust`.
[[nodiscard]] nlohmann::ordered_json to_json(const Diagnosis&, const JsonHead&, const Machine&);

/// "+41 %" or "+41 % (35 … 47 %)".
[[nodiscard]] std::string gain_text(const Interval&, bool with_interval = true);

}   // namespace drawpoint
