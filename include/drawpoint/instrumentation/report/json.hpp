#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint {

/// What every JSON document begins with beside its schema and the machine.
struct JsonHead {
    std::string version;   ///< of drawpoint
    std::string command;   ///< the command line that made the document
};

/// A document with `schema`, `version`, `command` and `machine`, to which the rest is added.
[[nodiscard]] nlohmann::ordered_json json_document(std::string_view schema, const JsonHead&, const Machine&);

/// The report as `drawpoint.report/1`: keys in the order of its description, unknown numbers null. Any thread.
[[nodiscard]] nlohmann::ordered_json to_json(const Summary&, const JsonHead&);

/// A document as text, indented, with a newline at its end; what is not UTF-8 in it is replaced.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json&);

}   // namespace drawpoint
