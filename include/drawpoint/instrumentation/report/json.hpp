#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint {

/// The fields that every JSON document has besides its schema and the machine.
struct JsonHead {
    std::string version;   ///< of drawpoint
    std::string command;   ///< the command line that produced the document
};

/// Starts a document with `schema`, `version`, `command` and `machine`; the caller adds the rest.
[[nodiscard]] nlohmann::ordered_json json_document(std::string_view schema, const JsonHead&, const Machine&);

/// The report in the schema `drawpoint.report/1`, which docs/formats.md describes: keys in a fixed order, unknown
/// numbers null. Any thread.
[[nodiscard]] nlohmann::ordered_json to_json(const Summary&, const JsonHead&);

/// Serializes a document as indented text with a newline at its end; invalid UTF-8 is replaced.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json&);

}   // namespace drawpoint
