#pragma once

#include <nlohmann/json.hpp>

#include "driver.hpp"

namespace drawpoint::bench {

/// Appends the comparison's rows and its circumstances to a document of schema drawpoint.comparison/1. Returns whether every
/// contender that ran delivered what it should.
bool add_to(nlohmann::ordered_json& document, const Comparison&, const Workload&, const ComparisonOptions&);

/// The document's rows as a table on stdout.
void print_table(const nlohmann::ordered_json& document);

}   // namespace drawpoint::bench
