#pragma once

#include <span>
#include <string>
#include <string_view>

#include <drawpoint/bench/experiment/experiment.hpp>

namespace drawpoint::bench {

/// Formats in which other programs read measurements: "google-benchmark" (JSON: a repetition a round, for compare.py),
/// "github-action-benchmark" (customSmallerIsBetter), "bencher" (Bencher Metric Format), "junit" (a test a comparison,
/// which fails if `Comparison::is_failure`), "markdown" and "csv".
[[nodiscard]] std::span<const std::string_view> experiment_formats() noexcept;

/// Writes measurements in one of these formats. Throws std::invalid_argument for another one, and for
/// "google-benchmark" if no metric is in seconds.
[[nodiscard]] std::string export_experiment(std::string_view format, const Measurements&, std::span<const Comparison>);

}   // namespace drawpoint::bench
