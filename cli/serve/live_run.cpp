#include "cli/serve/live_run.hpp"

#include <charconv>
#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "cli/prometheus.hpp"
#include "cli/recording.hpp"
#include "cli/report_output.hpp"
#include "cli/run_page.hpp"
#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include <drawpoint/instrumentation/facts.hpp>

namespace drawpoint::cli {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

// Of a core, that making the numbers, a page and a diagnosis may take.
constexpr double metrics_share = 0.0005, page_share = 0.02, diagnosis_share = 0.002;
constexpr auto least_pause = 200ms;   // between two looks into the recording, which grows about each 800

/// When the last record was made, in Unix time, if the recording says how to tell.
std::optional<std::chrono::sys_seconds> last_record(const Ledger& ledger) {
    const auto text = ledger.fact(facts::unix_offset_ns);
    std::int64_t offset_ns = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), offset_ns).ec != std::errc{} ||
        ledger.steps.empty())
        return std::nullopt;
    const std::chrono::nanoseconds at{end_ns(ledger.steps.back()) + offset_ns};
    return std::chrono::sys_seconds{std::chrono::floor<std::chrono::seconds>(at)};
}

}   // namespace

LiveRun::LiveRun(FollowedRun run, std::string command_line)
    : run_{std::move(run)}, command_line_{std::move(command_line)} {
    read();   // throws if it is no recording
}

void LiveRun::read() {
    const SteadyClock::time_point now = SteadyClock::now();
    if (run_.is_over() || now < read_at_ + least_pause)
        return;
    read_at_ = now;
    has_new_ = run_.read() || has_new_;
}

/// Reads what is new, and shows it unless that, at this cost, would take more than this share of a core.
std::shared_ptr<const LiveRun::Shown> LiveRun::shown(double cost_s, double share) {
    read();
    const bool is_due = SteadyClock::now() >= shown_at_ + pause_after(cost_s, share);
    if (has_new_ && (is_due || run_.is_over()))
        show_anew();
    return shown_;
}

void LiveRun::show_anew() {
    const double before_s = thread_cpu_s();
    auto shown = std::make_shared<Shown>();
    shown->is_over = run_.is_over();
    if (shown->is_over)   // which has the most rows: not with those of before beside them
        shown_.reset(), page_ = metrics_ = report_ = {};
    shown->ledger = shown->is_over ? whole_run() : run_.ledger();
    shown->summary = summary_of(shown->ledger, drops_first_batch(shown->ledger));
    shown->summary.recording.file = run_.name();
    std::error_code unknown;
    if (const auto bytes = std::filesystem::file_size(run_.content(), unknown); !unknown)
        shown->summary.recording.bytes = static_cast<std::int64_t>(bytes);
    const double diagnosis_s = diagnose_if_due(*shown);
    shown_cost_s_ = thread_cpu_s() - before_s - diagnosis_s;
    if (shown->diagnosis)
        add_diagnosis(shown->summary, *shown->diagnosis);
    has_new_ = false;
    shown_at_ = SteadyClock::now();
    shown_ = std::move(shown);
}

/// The rows that `drawpoint report` reads.
Ledger LiveRun::whole_run() const { return read_run(run_.content(), most_report_bytes).ledger; }

/// Finding the cause takes some tenths of a second, so that it is found rarely. What the draws waited for is computed
/// each time, since it refers to the rows. Returns the CPU time that finding the cause took.
double LiveRun::diagnose_if_due(Shown& shown) {
    try {
        if (SteadyClock::now() < next_diagnosis_ && !shown.is_over) {
            shown.diagnosis = diagnosis_;
            if (shown.diagnosis) {
                shown.diagnosis->blame = blame(shown.ledger);
                shown.diagnosis->blame_rows = blame_table(shown.ledger, shown.diagnosis->blame);
            }
            return 0;
        }
        const double before_s = thread_cpu_s();
        diagnosis_ = quick_diagnosis(shown.ledger);
        const double took_s = thread_cpu_s() - before_s;
        next_diagnosis_ = SteadyClock::now() + 2s + pause_after(took_s, diagnosis_share);
        shown.diagnosis = diagnosis_;
        return took_s;
    } catch (const std::exception&) {   // `diagnose` says why
        shown.diagnosis.reset();
        return 0;
    }
}

std::string LiveRun::metrics() {
    const std::scoped_lock lock{mutex_};
    const auto now = shown(shown_cost_s_, metrics_share);
    if (metrics_.of != now)
        metrics_ = {now, to_prometheus(now->summary, now->diagnosis ? &*now->diagnosis : nullptr)};
    return metrics_.text;
}

std::string LiveRun::report() {
    const std::scoped_lock lock{mutex_};
    const auto now = shown(shown_cost_s_, page_share);
    if (report_.of != now)
        report_ = {now, report_document(now->summary, now->diagnosis ? &*now->diagnosis : nullptr, command_line_)};
    return report_.text;
}

std::string LiveRun::page() {
    const std::scoped_lock lock{mutex_};
    read();
    if (page_.of && SteadyClock::now() < next_page_ && (page_.of->is_over || !run_.is_over()))
        return page_.text;
    const auto now = shown(shown_cost_s_, page_share);
    if (page_.of != now) {
        const double before_s = thread_cpu_s();
        const LivePage live{.state = state_of(*now), .is_running = !now->is_over};
        page_ = {now,
                 run_page(now->ledger, now->summary, now->diagnosis ? &*now->diagnosis : nullptr, command_line_, live)};
        next_page_ = SteadyClock::now() + pause_after(shown_cost_s_ + thread_cpu_s() - before_s, page_share);
    }
    return page_.text;
}

std::string LiveRun::state_of(const Shown& shown) {
    const auto last = last_record(shown.ledger);
    const std::string as_of = last ? fmt::format(" The last step recorded ended at {:%F %T} UTC.", *last) : "";
    if (shown.ledger.passes.empty())
        return shown.is_over ? "The recording has no steps." : "Nothing of the run is recorded yet.";
    return (!shown.is_over            ? "This run goes on."
            : shown.summary.run.ended ? "This run has ended."
                                      : "This run ended without its last records: its program was killed, or does not "
                                        "record any more.") +
           as_of;
}

std::string LiveRun::name() {
    const std::scoped_lock lock{mutex_};
    read();
    return run_.name();
}

std::string LiveRun::source() {
    const std::scoped_lock lock{mutex_};
    return run_.source();
}

std::shared_ptr<std::istream> LiveRun::recording() {
    const std::scoped_lock lock{mutex_};
    read();
    auto file = std::make_shared<std::ifstream>(run_.content(), std::ios::binary | std::ios::ate);
    if (!*file)
        throw Failure{fmt::format("{}: cannot be opened again", run_.name())};
    return file;
}

bool LiveRun::is_over() {
    const std::scoped_lock lock{mutex_};
    read();
    return run_.is_over();
}

}   // namespace drawpoint::cli
