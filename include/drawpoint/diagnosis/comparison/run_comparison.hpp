#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/diagnosis/replay/prediction.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint {

/// Part of the wall time of two runs, and what it adds to their difference.
struct WaterfallRow {
    std::string phase;   ///< "train", "valid", or "run" for what is in no step
    /// In steps: what a draw waited for, as in blame tables ("draw: decode"), a piece of the batch, or "between". The
    /// wait for a batch's other samples is in the stages that workers had them in. "number of steps" is what more or
    /// fewer steps cost. In "run": "first draws" of passes, "ends of data", "outside steps" (callbacks and the loop
    /// around passes); "folded draws", "folded batches" and "folded rest" of steps that the ledger has only totals of;
    /// "not recorded".
    std::string name;
    std::int64_t a_ns = 0, b_ns = 0;   ///< total; of "number of steps": 0
    std::int64_t difference_ns = 0;    ///< what it adds to b - a; the rows of a comparison sum to that of the walls
    /// 90 % interval of the difference by the scatter between blocks of steps; only of pieces of steps, if both runs
    /// have at least 20.
    std::optional<Interval> interval_ns;
};

/// Something that was not the same in two runs: an option, a fact, a library.
struct RunDifference {
    std::string name, a, b;   ///< a text is empty if that run has none
    bool operator==(const RunDifference&) const = default;
};

/// A run compared with another one. Exchanging them changes the sign of every difference, and nothing else.
struct RunComparison {
    std::int64_t a_wall_ns = 0, b_wall_ns = 0;
    std::uint64_t a_steps = 0, b_steps = 0;
    std::vector<RunDifference> differences;
    std::vector<WaterfallRow>
        rows;   ///< largest change first, then by phase and name; without those that are 0 in both
};

/// Explains the difference of two runs' wall times. A piece of a step is divided into what its mean time changed, at
/// the mean number of steps, and what the number of steps changed, at the mean of the mean times; so with an equal
/// number of steps and passes the rows are differences of totals. Sorted ledgers. O(rows log rows). Any thread.
[[nodiscard]] RunComparison compare_runs(const Ledger& a, const Ledger& b);

[[nodiscard]] std::string to_text(const RunComparison&, TextOptions = {});
[[nodiscard]] std::string to_markdown(const RunComparison&);
/// A waterfall from the first wall time to the second one, a bar a row: the 14 largest, and the others together.
[[nodiscard]] std::string to_svg(const RunComparison&);
/// A page with the waterfall and all rows. `more`: text for its end.
[[nodiscard]] std::string to_html(const RunComparison&, std::string_view title, std::string_view more);
/// Schema `drawpoint.run-comparison/1`, which docs/formats.md describes.
[[nodiscard]] nlohmann::ordered_json to_json(const RunComparison&, const JsonHead&, const Machine&);

}   // namespace drawpoint
