#include <cli/progress.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <cli/program.hpp>
#include <drawpoint/instrumentation/report/text.hpp>

namespace drawpoint::cli {
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

}   // namespace

Progress::Progress(const AnyClock& clock, bool terminal, bool colour, std::FILE* to) noexcept
    : clock_{clock}, terminal_{terminal}, colour_{colour}, to_{to}, begin_ns_{clock.now_ns()}, shown_ns_{begin_ns_} {}

EventSet Progress::events() const noexcept {
    return {Event::before_draw, Event::before_batch, Event::after_batch, Event::after_cancel_fit, Event::after_fit};
}

void Progress::on(Event event, LoopState& state) {
    switch (event) {
    case Event::before_draw: draw_begin_ns_ = clock_.now_ns(); break;
    case Event::before_batch: draw_ns_ += clock_.now_ns() - draw_begin_ns_; break;
    case Event::after_batch: {
        samples_ += state.batch_size;
        const std::int64_t now_ns = clock_.now_ns();
        if (now_ns - shown_ns_ >= (terminal_ ? redraw_ns : line_ns))
            show(state, now_ns);
        break;
    }
    default: clear(); break;
    }
}

void Progress::show(const LoopState& state, std::int64_t now_ns) {
    const double passed_s = static_cast<double>(now_ns - shown_ns_) / 1e9;
    const std::string batches = state.batches ? fmt::format("/{}", *state.batches) : "";
    std::string line =
        fmt::format("{} {}/{}  batch {:>{}}{}  {:>7} samples/s  draw {:>4.1f} %", *state.training ? "train" : "valid",
                    state.epoch + 1, state.epochs, state.batch + 1, batches.empty() ? 1 : batches.size() - 1, batches,
                    format_count(static_cast<std::int64_t>(static_cast<double>(samples_) / passed_s)),
                    100 * std::min(1.0, static_cast<double>(draw_ns_) / static_cast<double>(now_ns - shown_ns_)));
    if (state.loss)
        line += fmt::format("  loss {:.4g}", *state.loss);
    if (terminal_) {
        const double done =
            state.batches ? static_cast<double>(state.batch + 1) / static_cast<double>(*state.batches) : 0;
        write_to(to_, fmt::format("\r{}  {}\x1b[K", bar_of(done, colour_), line));
        shown_ = true;
    } else {
        write_to(to_, fmt::format("drawpoint: {}  ({})\n", line,
                                  format_duration(static_cast<double>(now_ns - begin_ns_) / 1e9)));
    }
    shown_ns_ = now_ns;
    draw_ns_ = 0;
    samples_ = 0;
}

void Progress::clear() {
    if (std::exchange(shown_, false))
        write_to(to_, "\r\x1b[K");
}

}   // namespace drawpoint::cli
