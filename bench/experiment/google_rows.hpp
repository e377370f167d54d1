#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/bench/experiment/results.hpp>

namespace drawpoint::bench {

/// "NAME real_time" and "NAME cpu_time" of each benchmark that Google Benchmark has written as JSON, in seconds: a
/// value for each repetition. Throws nlohmann::json::exception for another document.
[[nodiscard]] std::vector<ResultRow> google_rows(const nlohmann::json& document);

}   // namespace drawpoint::bench
