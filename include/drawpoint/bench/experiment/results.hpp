#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/bench/experiment/contender.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint::bench {

/// A quantity of a file of results, e.g. "old: wall time".
struct ResultRow {
    std::string name;
    Metric::Unit unit = Metric::Unit::seconds;
    std::vector<double> values;   ///< of each round or repetition; at least one
    /// A count that is the same in every run of the same program: one value says it.
    bool is_exact = false;
    std::size_t runs = 1;   ///< that a value is the mean of
};

/// A file of results.
struct Results {
    std::string name;
    std::vector<ResultRow> rows;
    std::string failure;   ///< which benchmark or contender failed first, and why; else ""
    std::vector<std::pair<std::string, std::string>> outputs;   ///< digests of what contenders made, by name
};

/// Reads a document of schema `drawpoint.experiment/1`, or the JSON of Google Benchmark, whose rows are real and CPU
/// time of each benchmark, in seconds, and what its memory manager counts. Throws std::invalid_argument if it is
/// neither.
[[nodiscard]] Results results_in(std::string name, const nlohmann::json& document);

/// Files of results, which were measured one after the other, beside the first one: medians and their ratios. Of times
/// there is no verdict, because their ratios also have what changed on the machine meanwhile; what is counted is told
/// to be equal or not. At least two files.
[[nodiscard]] std::string results_to_text(std::span<const Results>, TextOptions = {});
[[nodiscard]] std::string results_to_markdown(std::span<const Results>);
/// Schema `drawpoint.result-comparison/1`, which docs/formats.md describes.
[[nodiscard]] nlohmann::ordered_json results_to_json(std::span<const Results>, const JsonHead&, const Machine&);

}   // namespace drawpoint::bench
