#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/bench/experiment/results.hpp>

namespace drawpoint::bench {

/// "NAME real_time" and "NAME cpu_time" of each benchmark that Google Benchmark has written as JSON, in seconds: a
/// value for each repetition. Throws nlohmann::json::exception for another document.
[[nodiscard]] std::vector<ResultRow> google_rows(const nlohmann::json& document);

/// Whether it has aggregates of repetitions, and not the repetitions. Throws as google_rows().
[[nodiscard]] bool has_only_aggregates(const nlohmann::json& document);
inline constexpr std::string_view only_aggregates =
    "only aggregates of Google Benchmark: leave out --benchmark_report_aggregates_only";

/// "BM_it failed: the reason" of the first benchmark that did; empty: none. Throws as google_rows().
[[nodiscard]] std::string google_failure(const nlohmann::json& document);

}   // namespace drawpoint::bench
