#pragma once

#include <string>
#include <string_view>

namespace drawpoint::cli {

inline constexpr const char* open_metrics_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics in Prometheus' text format 0.0.4 as OpenMetrics 1.0: a counter's family is named without "_total", and the
/// text has an end.
[[nodiscard]] std::string open_metrics_of(std::string_view prometheus_text);

}   // namespace drawpoint::cli
