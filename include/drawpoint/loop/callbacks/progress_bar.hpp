#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/loop/callbacks/metrics_recorder.hpp>
#include <drawpoint/loop/event_callback.hpp>

namespace drawpoint {

struct ProgressBarOptions {
    std::FILE* to = stderr;
    std::optional<bool> terminal;                ///< whether `to` is a terminal; nullopt: ask the system
    std::optional<bool> colour;                  ///< nullopt: on a terminal, unless NO_COLOR is set
    std::string_view prefix = "";                ///< of lines other than the bar; static storage
    const MetricsRecorder* recorder = nullptr;   ///< prints its newest row after each epoch; must outlive the bar
};

/// Shows the progress of a fit: a bar that redraws itself on a terminal, else a line every 5 s, with position,
/// samples/s, the draw's share since the last update, and the loss. Text that cannot be written is dropped.
class ProgressBar final : public EventCallback<ProgressBar> {
public:
    explicit ProgressBar(const AnyClock& clock, const ProgressBarOptions& options = {});

    [[nodiscard]] int order() const noexcept override { return 60; }
    void before_epoch();
    void after_batch(const LoopState& state);
    void after_epoch(const LoopState& state);
    void after_cancel_fit() { clear(); }
    void after_fit() { clear(); }

    /// Erases the bar, so that something else can be printed.
    void clear();

private:
    void show(const LoopState& state, std::int64_t now_ns);
    void write(std::string_view text) noexcept;

    AnyClock clock_;
    ProgressBarOptions options_;
    bool terminal_, colour_, shown_ = false;
    std::int64_t begin_ns_, shown_ns_, epoch_ns_, draw_ns_ = 0;
    std::uint64_t samples_ = 0;
};

}   // namespace drawpoint
