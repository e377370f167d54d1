#include <drawpoint/loop/callbacks/progress_bar.hpp>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint {
namespace {

constexpr std::int64_t redraw_ns = 100'000'000, line_ns = 5'000'000'000;

std::string bar_of(double done, bool colour) {
    constexpr int width = 24;
    const int full = std::clamp(static_cast<int>(done * width), 0, width);
    std::string bar;
    for (int i = 0; i < width; ++i)
        bar += i < full ? "█" : "░";
    return colour ? "\x1b[36m" + bar + "\x1b[0m" : bar;
}

bool is_terminal(std::FILE* file) noexcept {
    const int number = ::fileno(file);
    return number >= 0 && ::isatty(number) != 0;
}

/// 0: not known.
std::size_t columns_of_terminal(std::FILE* file) noexcept {
    winsize size{};
    const int number = ::fileno(file);
    return number >= 0 && ::ioctl(number, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool colour_wanted() noexcept {
    const char* const no_colour = std::getenv("NO_COLOR");
    return no_colour == nullptr || *no_colour == '\0';
}

std::string passed(std::int64_t ns) { return format_duration(static_cast<double>(ns) / 1e9); }

}   // namespace

ProgressBar::ProgressBar(const AnyClock& clock, const ProgressBarOptions& options)
    : clock_{clock},
      options_{options},
      terminal_{options.terminal.value_or(is_terminal(options.to))},
      colour_{options.colour.value_or(terminal_ && colour_wanted())},
      begin_ns_{clock.now_ns()},
      shown_ns_{begin_ns_},
      epoch_ns_{begin_ns_} {}

void ProgressBar::before_epoch() { epoch_ns_ = clock_.now_ns(); }

void ProgressBar::after_batch(const LoopState& state) {
    samples_ += state.batch_size;
    draw_ns_ += state.track != nullptr ? state.track->step().draw_ns : 0;
    const std::int64_t now_ns = clock_.now_ns();
    if (now_ns - shown_ns_ >= (terminal_ ? redraw_ns : line_ns))
        show(state, now_ns);
}

void ProgressBar::after_epoch(const LoopState& state) {
    if (options_.recorder == nullptr || options_.recorder->log().empty())
        return;
    clear();
    const MetricsRecorder& recorder = *options_.recorder;
    const EpochMetrics& row = recorder.log().back();
    std::string line = fmt::format("{}epoch {}/{}", options_.prefix, state.epoch + 1, state.epochs);
    for (std::size_t i = 0; i < row.values.size(); ++i)
        if (row.values[i])
            line += fmt::format("  {} {:.4g}", recorder.names()[i], *row.values[i]);
    write(fmt::format("{}  ({})\n", line, passed(clock_.now_ns() - epoch_ns_)));
}

void ProgressBar::show(const LoopState& state, std::int64_t now_ns) {
    const auto since_ns = static_cast<double>(now_ns - shown_ns_);
    const std::string batches = state.batches ? fmt::format("/{}", *state.batches) : "";
    std::string line =
        fmt::format("{} {}/{}  batch {:>{}}{}  {:>7} samples/s", state.training.value_or(false) ? "train" : "valid",
                    state.epoch + 1, state.epochs, state.batch + 1, batches.empty() ? 1 : batches.size() - 1, batches,
                    format_count(static_cast<std::int64_t>(static_cast<double>(samples_) / (since_ns / 1e9))));
    if (state.track != nullptr)
        line += fmt::format("  draw {:>4.1f} %", 100 * std::min(1.0, static_cast<double>(draw_ns_) / since_ns));
    if (state.loss)
        line += fmt::format("  loss {:.4g}", *state.loss);
    if (terminal_) {
        const double done =
            state.batches ? static_cast<double>(state.batch + 1) / static_cast<double>(*state.batches) : 0;
        const std::string text = fmt::format("{}  {}", bar_of(done, colour_), line);
        const std::size_t columns = columns_of_terminal(options_.to);
        write(fmt::format("\r{}\x1b[K", columns > 1 ? cut(text, columns - 1) : text));
        shown_ = true;
    } else {
        write(fmt::format("{}{}  ({})\n", options_.prefix, line, passed(now_ns - begin_ns_)));
    }
    shown_ns_ = now_ns;
    draw_ns_ = 0;
    samples_ = 0;
}

void ProgressBar::clear() {
    if (std::exchange(shown_, false))
        write("\r\x1b[K");
}

void ProgressBar::write(std::string_view text) noexcept {
    // Errors are ignored: a closed or full stream must not end a fit.
    (void)std::fwrite(text.data(), 1, text.size(), options_.to);
    (void)std::fflush(options_.to);
}

}   // namespace drawpoint
