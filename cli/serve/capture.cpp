#include "cli/serve/capture.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cli/program.hpp"
#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include <drawpoint/instrumentation/export/xplane.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/ledger/ledger_window.hpp>

namespace drawpoint::cli {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kept_bytes = 32u << 20;             // of rows, out of which captures are cut
constexpr auto look_every = 50ms, longest_delay = 2000ms;   // of a record on its way into the file

std::int64_t last_step_end(const Ledger& rows) {
    std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
    for (const StepRow& step : rows.steps)
        last_ns = std::max(last_ns, end_ns(step));
    return last_ns;
}

/// Now, on the recording's clock; of one that does not say how that differs from Unix time, its last record.
std::int64_t now_of(const Ledger& rows) {
    std::int64_t offset_ns = 0;
    const auto text = rows.fact(facts::unix_offset_ns);
    if (!text || std::from_chars(text->data(), text->data() + text->size(), offset_ns).ec != std::errc{})
        return last_step_end(rows);
    return std::chrono::nanoseconds{std::chrono::system_clock::now().time_since_epoch()}.count() - offset_ns;
}

}   // namespace

std::optional<std::string> Captures::capture(std::chrono::milliseconds length,
                                             const std::function<bool()>& is_cancelled) {
    // A recording that reached its limit meanwhile begins anew with totals, without the rows of that time.
    constexpr int most_windows = 3;
    for (int window = 1;; ++window) {
        const std::int64_t from_ns = begin();
        const std::int64_t to_ns = from_ns + std::chrono::nanoseconds{length}.count();
        if (!wait_until(to_ns, SteadyClock::now() + length, is_cancelled))
            return std::nullopt;
        const Ledger part = cut(from_ns, to_ns);
        if (!part.steps.empty() || !part.samples.empty() || !part.operators.empty()) {
            std::ostringstream space;
            write_xplane(part, space);
            return std::move(space).str();
        }
        if (window == most_windows || stopped_ || is_over())
            return std::string{};
    }
}

/// Until what happened by then is recorded, or nothing more will be. False: cancelled.
bool Captures::wait_until(std::int64_t to_ns, SteadyClock::time_point end, const std::function<bool()>& is_cancelled) {
    const auto is_done = [&] {
        if (stopped_)
            return true;
        const bool is_late = SteadyClock::now() >= end + longest_delay;
        return SteadyClock::now() < end ? is_over() : is_late || has_until(to_ns);
    };
    for (; !is_done(); std::this_thread::sleep_for(look_every))
        if (is_cancelled())
            return false;
    return true;
}

/// Waits for the run's first records if it has only just begun.
std::int64_t Captures::begin() {
    const auto end = SteadyClock::now() + longest_delay;
    for (;; std::this_thread::sleep_for(look_every)) {
        const bool is_late = SteadyClock::now() >= end;
        const std::scoped_lock lock{mutex_};
        try {
            if (!run_)
                run_.emplace(followed_run(run_or_pid_, kept_bytes));
        } catch (const Failure&) {
            if (is_late)
                throw;
            continue;
        }
        run_->read();
        if (run_->is_over())
            throw Failure{fmt::format("{}: the run has ended", run_->name())};
        if (const std::int64_t now_ns = now_of(run_->rows()); now_ns > std::numeric_limits<std::int64_t>::min())
            return now_ns;
        if (is_late)
            throw Failure{fmt::format("{}: no step yet", run_->name())};
    }
}

bool Captures::has_until(std::int64_t ns) {
    return is_over() || [&] {
        const std::scoped_lock lock{mutex_};
        return last_step_end(run_->rows()) >= ns;
    }();
}

bool Captures::is_over() {
    const std::scoped_lock lock{mutex_};
    if (run_)
        run_->read();
    return run_ && run_->is_over();
}

Ledger Captures::cut(std::int64_t from_ns, std::int64_t to_ns) {
    const Ledger all = [this] {
        const std::scoped_lock lock{mutex_};
        return run_->ledger();
    }();
    return window(all, std::max(from_ns, all.folded.until_ns), to_ns);   // of more than is kept, the end
}

}   // namespace drawpoint::cli
