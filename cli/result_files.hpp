#pragma once

#include <string>

#include <drawpoint/bench/experiment/results.hpp>

namespace drawpoint::cli {

/// Whether a file is one of results: of drawpoint's experiments, or Google Benchmark's. Reads its first 4 KiB. Throws
/// Failure naming a file that cannot be opened.
[[nodiscard]] bool holds_results(const std::string& file);

/// Throws Failure naming the file and what is wrong with it.
[[nodiscard]] bench::Results read_results(const std::string& file);

}   // namespace drawpoint::cli
