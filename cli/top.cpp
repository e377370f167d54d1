#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <time.h>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/options.hpp"
#include "cli/report_output.hpp"
#include "cli/top/terminal.hpp"
#include "cli/top/top_frame.hpp"
#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include <drawpoint/instrumentation/trace/live_recordings.hpp>
#include <drawpoint/instrumentation/trace/trace_follower.hpp>

namespace drawpoint::cli {
namespace {

using namespace std::chrono_literals;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr std::chrono::milliseconds look_every{200}, line_every{5000}, longest_pause{1000};
constexpr std::uint64_t kept_bytes = 2u << 20;
constexpr double view_share = 0.006, diagnosis_share = 0.003;   // of a core, that they may take

double cpu_s() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// After work of this CPU time, so that it takes that share of a core.
std::chrono::milliseconds pause_after(double used_s, double share) {
    return std::chrono::milliseconds{static_cast<std::int64_t>(1e3 * used_s / share)};
}

/// A run that is followed, and the view of it.
class FollowedRun {
public:
    /// `file` as the user named it, or as its writer has it open.
    FollowedRun(const std::filesystem::path& file, std::optional<LiveRecording> writer)
        : writer_{std::move(writer)}, follower_{std::in_place, file, kept_bytes} {}

    /// Reads what is new, but not within a second of the last time if that cost much. Whether the view has changed.
    bool look() {
        if (writer_ && std::chrono::steady_clock::now() < next_look_)
            return false;
        const double before_s = cpu_s();
        const bool was_written = writer_ && is_being_written(*writer_);   // before reading what it wrote last
        bool is_new = read();
        if (!was_written && !is_over_)
            is_new = find_again() || is_new;
        if (!is_new)
            return false;
        ledger_ = follower_->ledger();
        view_ = top_view(ledger_, 0);
        next_look_ =
            std::chrono::steady_clock::now() + std::min(pause_after(cpu_s() - before_s, view_share), longest_pause);
        diagnose_if_due();
        return true;
    }

    [[nodiscard]] TopView view(std::chrono::seconds earlier) const {
        TopView view = earlier == 0s ? view_ : top_view(ledger_, std::chrono::nanoseconds{earlier}.count());
        if (is_over_)
            view.state = view.run.run.ended ? TopView::State::ended : TopView::State::cut;
        view.rates = rates_.rates();
        view.rates_s = rates_.span_s();
        view.diagnosis = diagnosis_;
        return view;
    }
    [[nodiscard]] bool is_over() const noexcept { return is_over_; }
    [[nodiscard]] std::string warning() const { return follower_->warning(); }

private:
    bool read() {
        bool is_new = false;
        while (follower_->read()) {
            is_new = true;
            add_rate();
        }
        return is_new;
    }
    void add_rate() {
        const Ledger& rows = follower_->rows();
        std::uint64_t samples = rows.folded.samples;
        std::int64_t last_ns = rows.start_ns;
        for (const StepRow& step : rows.steps) {
            samples += step.size;
            last_ns = std::max(last_ns, end_ns(step));
        }
        rates_.add(last_ns, samples);
    }
    /// The file is not written any more: the run goes on in another one, which begins with its totals, or it is over.
    bool find_again() {
        const auto next = writer_ ? live_recordings(writer_->pid) : std::vector<LiveRecording>{};
        try {
            if (!next.empty()) {
                follower_.emplace(next.front().path, kept_bytes);
                writer_ = next.front();
                return read();
            }
        } catch (const std::system_error&) {   // that process has ended just now
        }
        is_over_ = true;
        follower_->read_rest();
        return true;
    }
    /// Looking for the cause takes some tenths of a second: so rarely that it costs little, and at the end.
    void diagnose_if_due() {
        const SteadyTime now = std::chrono::steady_clock::now();
        if (now < next_diagnosis_ && !is_over_)
            return;
        const double before_s = cpu_s();
        try {
            if (auto found = quick_diagnosis(ledger_))
                diagnosis_ = top_diagnosis(ledger_, std::move(*found));
        } catch (const std::exception&) {   // `diagnose` says why
            diagnosis_.reset();
        }
        next_diagnosis_ = now + 2s + pause_after(cpu_s() - before_s, diagnosis_share);
    }

    std::optional<LiveRecording> writer_;
    std::optional<TraceFollower> follower_;
    bool is_over_ = false;
    Ledger ledger_;
    TopView view_;   // of it, at its end
    TopRates rates_;
    SteadyTime next_look_{};
    std::optional<TopDiagnosis> diagnosis_;
    SteadyTime next_diagnosis_{};
};

/// The run that the argument means.
FollowedRun run_named(const std::string& name) {
    const auto newest = [](std::vector<LiveRecording> live, const std::string& complaint) {
        if (live.empty())
            throw Failure{complaint};
        return live.front();
    };
    if (name.empty()) {
        const LiveRecording live = newest(live_recordings(), "no recording of yours is being written: name RUN or PID");
        return {live.path, live};
    }
    if (const auto pid = number_in<int>(name); pid && !std::filesystem::exists(name)) {
        const LiveRecording live = newest(
            live_recordings(*pid), fmt::format("process {} is writing no recording that can be read from here", *pid));
        return {live.path, live};
    }
    return {name, writer_of(name)};
}

bool is_dumb() noexcept {
    const char* const term = std::getenv("TERM");
    return term == nullptr || *term == '\0' || std::string_view{term} == "dumb" || isatty(STDOUT_FILENO) == 0 ||
           isatty(STDIN_FILENO) == 0;
}

/// A line every few seconds, until the run ends.
void print_lines(FollowedRun& run) {
    SteadyTime next = std::chrono::steady_clock::now();
    for (;; std::this_thread::sleep_for(look_every)) {
        run.look();
        const SteadyTime now = std::chrono::steady_clock::now();
        if (now < next && !run.is_over())
            continue;
        print(line_text(run.view(0s)));
        if (run.is_over())
            return;
        next += line_every;
    }
}

/// The full screen, until the user leaves it. Whether by Ctrl-C or a signal.
bool show_screen(FollowedRun& run, bool colour) {
    Terminal terminal;
    TopFrame frame{.colour = colour};
    std::chrono::seconds earlier{0};
    bool redraw = true;
    for (SteadyTime next_look{};;) {
        if (const SteadyTime now = std::chrono::steady_clock::now(); !frame.paused && now >= next_look) {
            redraw = run.look() || redraw;
            next_look = now + look_every;
        }
        if (redraw) {
            const ScreenSize size = screen_size();
            frame.width = size.width;
            frame.height = size.height;
            const TopView view = run.view(earlier);
            earlier = std::min(earlier, std::chrono::seconds{std::llround(std::ceil(view.earlier_s.value_or(0)))});
            terminal.show(frame_text(view, frame));
        }
        const auto press = terminal.wait(100ms);
        redraw = press.has_value();
        if (!press)
            continue;
        switch (press->key) {
        case Key::stop: return true;
        case Key::resized: break;
        case Key::left: earlier += 5s; break;
        case Key::right: earlier = std::max(0s, earlier - 5s); break;
        case Key::character:
            switch (press->character) {
            case 'q': return false;
            case 'p': frame.paused = !frame.paused; break;
            case '?': frame.page = frame.page == TopPage::help ? TopPage::run : TopPage::help; break;
            case '1': frame.page = TopPage::run; break;
            case '2': frame.page = TopPage::draws; break;
            case '3': frame.page = TopPage::workers; break;
            case '4': frame.page = TopPage::samples; break;
            case '5': frame.page = TopPage::verdict; break;
            default: break;
            }
        }
    }
}

}   // namespace

int top(const Invocation& invocation) {
    CommandLine line{invocation, "Shows a run while it trains: rates, draws and their causes, workers, the verdict."};
    std::string name;
    bool once = false;
    OutputOptions::Colour colour{};
    line.app().add_option("RUN|PID", name, "the recording, or the process that writes one [your newest live one]");
    line.app().add_flag("--once", once, "prints the view once, and ends")->configurable(false);
    add_colour(line.app(), colour);
    if (!line.parse())
        return exit_ok;
    const bool coloured = OutputOptions{.colour = colour}.colour_on_stdout();
    FollowedRun run = run_named(name);
    bool stopped = false;
    if (once) {
        run.look();
        print(frame_text(run.view(0s),
                         {.width = screen_size().width, .height = 50, .colour = coloured, .has_keys = false}) +
              "\n");
    } else if (is_dumb()) {
        print_lines(run);
    } else {
        stopped = show_screen(run, coloured);
    }
    if (const std::string warning = run.warning(); !warning.empty())
        complain(warning);
    return stopped ? exit_interrupted : exit_ok;
}

}   // namespace drawpoint::cli
