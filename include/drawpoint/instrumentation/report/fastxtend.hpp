#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace drawpoint {

struct Ledger;

/// Which of fastxtend's reports: 0.1.7's Simple (every action) or Throughput (step, draw, batch), or the Simple
/// Profiler of 0.0.19 (a column `Step`, no step rows, no batch ever dropped).
enum class ProfileMode : std::uint8_t { simple, throughput, simple_old };

/// What was measured of one batch, in seconds. Absent: that stage did not happen (a cancelled or accumulating step).
struct FastxtendBatch {
    std::int64_t size = 0;   ///< samples, of the input
    double draw = 0, batch = 0;
    std::optional<double> forward;   ///< in validation: predict
    std::optional<double> loss, backward, opt_step, zero_grad;
};

/// The durations fastxtend records during one fit, in seconds and in order of time.
struct FastxtendValues {
    std::optional<double> fit;
    std::vector<double> epoch, train, valid;   ///< whole passes
    std::vector<FastxtendBatch> train_batches, valid_batches;
    std::uint64_t steps_folded = 0;   ///< not among the batches
};

/// The durations of the ledger's last fit, each the difference of two stamps turned into seconds, as fastxtend's own.
/// A batch counts when it was drawn and its `after_batch` was reached, a pass when its last event was. Without a fit in
/// the ledger the whole of it is taken, and `fit` stays absent. Of a ledger that folds (`RecorderOptions::ledger_steps`) the
/// batches are those of the steps it keeps. O(ledger). Any thread.
[[nodiscard]] FastxtendValues fastxtend_values(const Ledger& ledger);

/// One row of the results, before formatting. Absent numbers print as "-".
struct FastxtendRow {
    std::string phase, action, step;   ///< `step` is used by `ProfileMode::simple_old` alone
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
    std::uint64_t steps_folded = 0;   ///< not in the rows of steps, but in those of passes
    std::vector<FastxtendRow> rows;
    /// The original keeps a column of means or deviations as integers until a value more than 1e-8 away from a whole
    /// number arrives, and rounds those before it; so a run measured in picoseconds has means of 0.
    bool whole_means = true, whole_std_devs = true;
};

/// Computes fastxtend's report: the arithmetic, the order of rows and every cell as the original has them, except that
/// what makes the original fail (no validation batch, nothing left after the drop, a duration of zero or NaN, stages
/// that did not happen) gives "-" in the cells concerned. With `drop_first_batch` the first training and the first
/// validation batch of the fit are left out of their phases' rows. O(values). Any thread.
[[nodiscard]] FastxtendReport fastxtend_report(const FastxtendValues& values, ProfileMode mode,
                                               bool drop_first_batch = true);

/// Column titles of this report, and its cells as printed (`formatted_cells`) or as saved (`raw_cells`), row by row.
[[nodiscard]] std::vector<std::string> column_titles(const FastxtendReport& report);
[[nodiscard]] std::vector<std::vector<std::string>> formatted_cells(const FastxtendReport& report);
[[nodiscard]] std::vector<std::vector<std::string>> raw_cells(const FastxtendReport& report);

/// What the original prints after a fit, byte for byte, the notice of a dropped batch included, and then that of steps folded,
/// if there are any; UTF-8.
[[nodiscard]] std::string to_plain(const FastxtendReport& report);
[[nodiscard]] std::string to_markdown(const FastxtendReport& report);

/// The file the original saves, byte for byte: unformatted seconds in the shortest form that reads back exactly.
[[nodiscard]] std::string to_csv(const FastxtendReport& report);

}   // namespace drawpoint
