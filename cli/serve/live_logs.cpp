#include "cli/serve/live_logs.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "cli/program.hpp"
#include "cli/recording.hpp"
#include "cli/report_output.hpp"

namespace drawpoint::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kept_bytes = 3u << 20;   // more rows than one look at the recording brings
constexpr auto metrics_every = 15s;

bool is_for_prometheus(const RunLog& log) noexcept { return log.format == "prometheus"; }

}   // namespace

LiveLogs::LiveLogs(std::string run_or_pid, std::vector<RunLog> logs) : run_or_pid_{std::move(run_or_pid)} {
    check_run_logs(logs);
    for (RunLog& log : logs)
        logs_.push_back({.to = std::move(log), .open = std::nullopt});
}

/// Unless that has failed already. What is thrown is said once.
template <class Action>
void LiveLogs::try_to(bool& has_failed, Action&& action) {
    if (has_failed)
        return;
    try {
        action();
    } catch (const std::exception& error) {
        complain(error.what());
        has_failed_ = has_failed = true;
    }
}

/// Opens the logs once the run has begun, of which they get its name.
bool LiveLogs::begin() {
    if (run_)
        return true;
    std::string name;
    const bool has_metrics = std::ranges::any_of(logs_, is_for_prometheus, &Log::to);
    try {
        FollowedRun first = followed_run(run_or_pid_, kept_bytes);
        first.read();
        name = first.name();
        if (has_metrics)
            metrics_.emplace(followed_run(run_or_pid_, kept_bytes), "");
        run_.emplace(followed_run(run_or_pid_, kept_bytes));
    } catch (const std::exception&) {   // not yet, or it has just ended
        return false;
    }
    for (Log& log : logs_)
        if (!is_for_prometheus(log.to))
            try_to(log.has_failed, [&] { log.open.emplace(log.to, name); });
    return true;
}

void LiveLogs::update(const Ledger& ledger) {
    for (Log& log : logs_)
        if (log.open)
            try_to(log.has_failed, [&] {
                log.open->update(ledger);
                log.open->check();
            });
}

void LiveLogs::write_metrics_if_due() {
    const auto now = std::chrono::steady_clock::now();
    if (!metrics_ || now < next_metrics_)
        return;
    next_metrics_ = now + metrics_every;
    for (Log& log : logs_)
        if (is_for_prometheus(log.to))
            try_to(log.has_failed, [&] { write_metrics(log.to.path, metrics_->metrics()); });
}

void LiveLogs::look() {
    if (is_finished_ || logs_.empty() || !begin())
        return;
    bool has_failed = false;
    try_to(has_failed, [&] { run_->read([&](const Ledger&) { update(run_->ledger()); }); });
    if (has_failed || run_->is_over())
        finish();
    else
        write_metrics_if_due();
}

void LiveLogs::finish() {
    if (is_finished_ || logs_.empty() || !begin())
        return;
    is_finished_ = true;
    bool has_failed = false;
    try_to(has_failed, [&] { log_rest(); });
}

void LiveLogs::log_rest() {
    run_->read();
    // All rows, as `export` reads them.
    const Ledger ledger = run_->is_over() ? read_run(run_->content()).ledger : run_->ledger();
    Summary summary = summary_of(ledger, drops_first_batch(ledger));
    summary.recording.file = run_->name();
    const auto diagnosis = diagnosis_of(ledger);
    if (diagnosis)
        add_diagnosis(summary, *diagnosis);
    const Diagnosis* const found = diagnosis ? &*diagnosis : nullptr;
    for (Log& log : logs_)
        try_to(log.has_failed, [&] {
            if (log.open)
                log.open->finish(ledger, summary, found);
            else
                write_run_log(log.to, ledger, summary, found);
        });
}

}   // namespace drawpoint::cli
