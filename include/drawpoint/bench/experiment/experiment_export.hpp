#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/bench/experiment/experiment.hpp>

namespace drawpoint::bench {

/// Formats to write measurements in: "html" (a page with a picture of the ratios), and for other programs
/// "google-benchmark" (JSON: a repetition a round, for compare.py),
/// "github-action-benchmark" (customSmallerIsBetter), "bencher" (Bencher Metric Format), "junit" (a test a comparison,
/// which fails if `Comparison::is_failure`), "markdown", "csv", and "otava" (CSV for Apache Otava: a line a
/// measurement, with time, commit (DRAWPOINT_COMMIT, GITHUB_SHA or CI_COMMIT_SHA) and medians).
[[nodiscard]] std::span<const std::string_view> experiment_formats() noexcept;

/// A file to write in one of these formats.
struct ExportFile {
    std::string format, file;
};
/// Reads FORMAT=FILE. Throws std::invalid_argument that says what is wrong.
[[nodiscard]] ExportFile export_file_in(std::string_view text);

/// Writes measurements in one of these formats. Throws std::invalid_argument for another one, and for
/// "google-benchmark" if there is no wall time.
[[nodiscard]] std::string export_experiment(std::string_view format, const Measurements&, std::span<const Comparison>);

/// Writes the file, or, for "otava", adds a line to it. Throws as export_experiment(), and std::runtime_error naming a
/// file that cannot be written, or whose columns are others.
void write_export(const ExportFile&, const Measurements&, std::span<const Comparison>);
/// Writes them all. Returns a sentence for each that could not be written.
[[nodiscard]] std::vector<std::string> write_exports(std::span<const ExportFile>, const Measurements&,
                                                     std::span<const Comparison>);

}   // namespace drawpoint::bench
