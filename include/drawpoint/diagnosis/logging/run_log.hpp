#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/loop/loggers/file_loggers.hpp>
#include <drawpoint/loop/loggers/logger.hpp>

namespace drawpoint {

/// Logs a recorded run, while it trains or after it: the settings; for each training step that a ledger has a row of,
/// at the time of its end, `drawpoint/draw_s`, `batch_s`, `step_s`, `samples_per_s`, `draw_share`, `ready_batches` and
/// `loss`; at the end the durations of draws and batches as summaries, numbers of the report under `report/` with the
/// values of its JSON, the report and the verdict as texts, how it ended, and settings that are known only then. Each
/// step is logged once. One thread at a time; the logger must outlive it.
class RunLogger {
public:
    explicit RunLogger(Logger& logger) noexcept : logger_{&logger} {}
    /// Logs what is new in a ledger of the same run, sorted, as it is by now; nothing before its first training step. A
    /// step is missing if the ledgers of one call and the next both lack its row. O(rows log rows).
    void update(const Ledger&);
    /// Logs the rest, or all of it without `update` before. `diagnosis` may be null. Once. The caller calls the
    /// logger's `finish()`. Sorted ledger. O(rows log rows).
    void finish(const Ledger&, const Summary&, const Diagnosis* diagnosis);

private:
    struct Durations {
        std::vector<double> draws_s, batches_s;
    };
    void log_settings(const Ledger&, const Summary&, const Diagnosis*);
    Durations log_steps(const Ledger&);

    Logger* logger_;
    bool has_settings_ = false;
    std::uint64_t logged_ = 0;   // number of the last step that was
};

/// Charts of what RunLogger logs, for `TensorBoardLogger::log_charts`. Static storage.
[[nodiscard]] std::span<const ScalarChart> run_charts();

}   // namespace drawpoint
