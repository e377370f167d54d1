#pragma once

#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "cli/followed_run.hpp"
#include "cli/run_logs.hpp"
#include "cli/serve/live_run.hpp"

namespace drawpoint::cli {

/// Logs a run while it trains: its steps when they are recorded, Prometheus' file each 15 seconds. What cannot be
/// written is said on stderr, once, and costs the other logs nothing. One thread at a time.
class LiveLogs {
public:
    /// `run_or_pid`: as followed_run takes it. A process need not have begun its recording. Throws Failure naming a log
    /// that cannot be written.
    LiveLogs(std::string run_or_pid, std::vector<RunLog>);

    /// Logs what is new; once the run is over, the rest.
    void look();
    /// Logs the rest of what was recorded so far, unless `look` did. Nothing comes after it.
    void finish();

    /// Whether a log could not be written, or the run not be read.
    [[nodiscard]] bool have_failed() const noexcept { return has_failed_; }
    /// Whether there was something to log, or nothing was to be logged.
    [[nodiscard]] bool have_begun() const noexcept { return run_ || logs_.empty(); }
    /// Whether the logs have all of a run that is over.
    [[nodiscard]] bool are_whole() const noexcept { return is_finished_ && run_ && run_->is_over(); }

private:
    struct Log {
        RunLog to;
        std::optional<OpenLog> open;   // none for Prometheus
        bool has_failed = false;
    };
    [[nodiscard]] bool begin();
    void log_rest();
    void update(const Ledger&);
    void write_metrics_if_due();
    template <class Action>
    void try_to(bool& has_failed, Action&&);

    const std::string run_or_pid_;
    std::list<Log> logs_;   // each stays where it is
    std::optional<FollowedRun> run_;
    std::optional<LiveRun> metrics_;   // of Prometheus' logs
    std::chrono::steady_clock::time_point next_metrics_{};
    bool has_failed_ = false, is_finished_ = false;
};

}   // namespace drawpoint::cli
