#pragma once

#include <string>

#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::cli {

/// A run's numbers in Prometheus' text format 0.0.4, with the values of the report's JSON: for node_exporter's textfile
/// collector. `diagnosis` may be null.
[[nodiscard]] std::string to_prometheus(const Summary&, const Diagnosis* diagnosis);

}   // namespace drawpoint::cli
