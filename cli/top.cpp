#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/followed_run.hpp"
#include "cli/options.hpp"
#include "cli/report_output.hpp"
#include "cli/top/terminal.hpp"
#include "cli/top/top_frame.hpp"
#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>

namespace drawpoint::cli {
namespace {

using namespace std::chrono_literals;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr std::chrono::milliseconds look_every{200}, line_every{5000}, longest_pause{1000};
constexpr std::uint64_t kept_bytes = 2u << 20;
constexpr double view_share = 0.006, diagnosis_share = 0.003;   // of a core, that they may take

/// A run that is followed, and the view of it.
class ShownRun {
public:
    explicit ShownRun(FollowedRun run) : run_{std::move(run)} {}

    /// Reads what is new, but not within a second of the last time if that cost much. Whether the view has changed.
    bool look() {
        if (!run_.is_over() && std::chrono::steady_clock::now() < next_look_)
            return false;
        const double before_s = process_cpu_s();
        if (!run_.read([this](const Ledger& rows) { add_rate(rows); }))
            return false;
        ledger_ = run_.ledger();
        view_ = top_view(ledger_, 0);
        next_look_ = std::chrono::steady_clock::now() +
                     std::min(pause_after(process_cpu_s() - before_s, view_share), longest_pause);
        diagnose_if_due();
        return true;
    }

    [[nodiscard]] TopView view(std::chrono::seconds earlier) const {
        TopView view = earlier == 0s ? view_ : top_view(ledger_, std::chrono::nanoseconds{earlier}.count());
        if (is_over())
            view.state = view.run.run.ended ? TopView::State::ended : TopView::State::cut;
        view.rates = rates_.rates();
        view.rates_s = rates_.span_s();
        view.diagnosis = diagnosis_;
        return view;
    }
    [[nodiscard]] bool is_over() const noexcept { return run_.is_over(); }
    [[nodiscard]] std::string warning() const { return run_.warning(); }

private:
    void add_rate(const Ledger& rows) {
        std::uint64_t samples = rows.folded.samples;
        std::int64_t last_ns = rows.start_ns;
        for (const StepRow& step : rows.steps) {
            samples += step.size;
            last_ns = std::max(last_ns, end_ns(step));
        }
        rates_.add(last_ns, samples);
    }
    /// Looking for the cause takes some tenths of a second: so rarely that it costs little, and at the end.
    void diagnose_if_due() {
        const SteadyTime now = std::chrono::steady_clock::now();
        if (now < next_diagnosis_ && !is_over())
            return;
        const double before_s = process_cpu_s();
        try {
            if (auto found = quick_diagnosis(ledger_))
                diagnosis_ = top_diagnosis(ledger_, std::move(*found));
        } catch (const std::exception&) {   // `diagnose` says why
            diagnosis_.reset();
        }
        next_diagnosis_ = now + 2s + pause_after(process_cpu_s() - before_s, diagnosis_share);
    }

    FollowedRun run_;
    Ledger ledger_;
    TopView view_;   // of it, at its end
    TopRates rates_;
    SteadyTime next_look_{};
    std::optional<TopDiagnosis> diagnosis_;
    SteadyTime next_diagnosis_{};
};

bool is_dumb() noexcept {
    const char* const term = std::getenv("TERM");
    return term == nullptr || *term == '\0' || std::string_view{term} == "dumb" || isatty(STDOUT_FILENO) == 0 ||
           isatty(STDIN_FILENO) == 0;
}

/// A line every few seconds, until the run ends.
void print_lines(ShownRun& run) {
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
bool show_screen(ShownRun& run, bool colour) {
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
    ShownRun run{followed_run(name, kept_bytes)};
    bool stopped = false;
    if (once) {
        run.look();
        print(frame_text(run.view(0s), {.width = width_of_stdout().value_or(usual_width),
                                        .height = 50,
                                        .colour = coloured,
                                        .has_keys = false}) +
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
