#pragma once

#include <nlohmann/json.hpp>

#include "driver.hpp"

namespace drawpoint::bench {

/// Appends the comparison's rows and circumstances to a document of schema drawpoint.comparison/1. Returns whether
/// every contender that ran passed its check.
bool add_to(nlohmann::ordered_json& document, const LoaderComparison&, const Workload&, const ComparisonOptions&);

/// Prints the document's rows as a table on stdout.
void print_table(const nlohmann::ordered_json& document);

}   // namespace drawpoint::bench
