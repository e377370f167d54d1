#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace drawpoint {

struct Ledger;

/// Which of fastxtend's reports to produce: Simple (all actions) or Throughput (step, draw, batch) of 0.1.7, or the
/// Simple Profiler of 0.0.19 (has a column `Step`, no step rows, and never drops a batch).
enum class ProfileMode : std::uint8_t { simple, throughput, simple_old };

/// Durations of one batch's actions, in seconds; absent if an action did not happen (cancelled or accumulating step).
struct FastxtendBatch {
    std::int64_t size = 0;   ///< samples in the input
    double draw = 0, batch = 0;
    std::optional<double> forward;   ///< in validation: predict
    std::optional<double> loss, backward, opt_step, zero_grad;
};

/// The durations fastxtend records during one fit, in seconds and in order of time.
struct FastxtendValues {
    std::optional<double> fit;
    std::vector<double> epoch, train, valid;   ///< whole passes
    std::vector<FastxtendBatch> train_batches, valid_batches;
    std::uint64_t steps_folded = 0;   ///< old steps that the ledger folded; missing in the batches
};

/// The durations of the ledger's last fit. Like fastxtend's, each is the difference of two times in seconds. A batch
/// counts if it was drawn and reached its `after_batch`, a pass if it reached its last event. If the ledger has no fit,
/// all of it is used and `fit` is absent. If the ledger folds old steps (`RecorderOptions::ledger_bytes`), only the
/// batches of the steps it keeps are included. O(ledger). Any thread.
[[nodiscard]] FastxtendValues fastxtend_values(const Ledger& ledger);

/// One row of the results, before formatting. Absent numbers print as "-".
struct FastxtendRow {
    std::string phase, action, step;   ///< `step` is used by `ProfileMode::simple_old` only
    std::optional<double> mean_s, std_dev_s;
    std::size_t calls = 0;
    std::string samples_per_second;   ///< "68,140", "-680" or "-"
    std::optional<double> total_s;
    std::string percent_of_total;   ///< "12%" or "-"
};

/// fastxtend's results as a table of rows.
struct FastxtendReport {
    ProfileMode mode{};
    bool first_batch_dropped = false;
    std::uint64_t steps_folded = 0;   ///< old steps that the ledger folded; only the rows of passes include them
    std::vector<FastxtendRow> rows;
    /// The original stores a column of means or deviations as integers until it meets a value more than 1e-8 away from
    /// a whole number, and rounds the values before it; so a run measured in picoseconds has means of 0.
    bool whole_means = true, whole_std_devs = true;
};

/// Computes fastxtend's report with the original's arithmetic, order of rows and cells. Cases in which the original
/// fails (no validation batch, no batch left after the drop, a duration of zero or NaN, actions that did not happen)
/// give "-" in the affected cells. `drop_first_batch` leaves the first training batch and the first validation batch of
/// the fit out of their phases' rows. O(values). Any thread.
[[nodiscard]] FastxtendReport fastxtend_report(const FastxtendValues& values, ProfileMode mode,
                                               bool drop_first_batch = true);

/// Column titles of the report, and its cells as printed (`formatted_cells`) or as saved (`raw_cells`), row by row.
[[nodiscard]] std::vector<std::string> column_titles(const FastxtendReport& report);
[[nodiscard]] std::vector<std::vector<std::string>> formatted_cells(const FastxtendReport& report);
[[nodiscard]] std::vector<std::vector<std::string>> raw_cells(const FastxtendReport& report);

/// The text that the original prints after a fit, byte for byte, including its notice about a dropped batch. A notice
/// about folded steps follows if there are any. UTF-8. If a line would be wider than `width` columns, the table is
/// drawn closer and without the columns that say least.
[[nodiscard]] std::string to_plain(const FastxtendReport& report, std::optional<std::size_t> width = std::nullopt);
[[nodiscard]] std::string to_markdown(const FastxtendReport& report);

/// The file that the original saves, byte for byte: seconds in the shortest form that reads back exactly.
[[nodiscard]] std::string to_csv(const FastxtendReport& report);

}   // namespace drawpoint
