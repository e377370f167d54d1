#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <drawpoint/instrumentation/recorder/reading_budget.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/host/thread_usage.hpp>

namespace drawpoint {

/// Tiles the time of a training loop into pieces: every `mark()` reads the clock once, ends a piece there and begins the next,
/// so nothing falls between two of them. Passes nest (fit, epoch, train or valid); a step stands inside the innermost.
/// Writes each step whole when the time after it ends. Of steps whose readings are worth their price (`ReadingBudget`), and
/// unless the clock is moved by hand, also what its thread spent computing and waiting for a core. One thread at a time, or one strand; never allocates, never throws.
/// The recorder outlives it.
class LoopTrack {
public:
    explicit LoopTrack(Recorder& recorder) noexcept : LoopTrack(&recorder) {}
    /// Null: records nothing and reads no clock.
    explicit LoopTrack(Recorder* recorder) noexcept
        : recorder_{recorder}, last_ns_{recorder != nullptr ? recorder->now_ns() : 0} {
        if (recorder_ != nullptr)
            recorder_->add_this_thread("loop");
    }
    LoopTrack(const LoopTrack&) = delete;
    LoopTrack& operator=(const LoopTrack&) = delete;

    /// A pass begins at the last reading.
    void begin_pass(PassKind, std::uint32_t epoch) noexcept;
    /// The innermost pass ends at the last reading.
    void end_pass() noexcept;

    /// A step begins at the last reading, with its draw. Ends the time after the step before.
    void begin_step(Phase, std::uint32_t epoch, std::uint32_t batch) noexcept;
    /// The draw ends and the batch begins, at the last reading. `batch`: its number in its pass, if it knows it better than
    /// begin_step() did (batches out of order).
    void end_draw(std::uint32_t size, std::optional<std::uint32_t> batch = std::nullopt) noexcept;
    /// The step ends at the last reading; what is marked from here on is the time between.
    void end_step(StepStatus, std::optional<double> loss) noexcept;
    /// No further step follows in this pass: what is marked from here on belongs to the pass.
    void end_steps() noexcept {
        if (recorder_ != nullptr)
            push_step();
    }
    /// The draw found the end of a source of unknown length: it belongs to no step. `before_ns` is when the draw began.
    void end_of_data() noexcept;

    /// [last reading, now) was spent on `span`, in the step at hand, else in the innermost pass.
    void mark(Span span) noexcept {
        if (recorder_ != nullptr)
            add_piece(span, recorder_->now_ns());
    }
    /// The same up to a reading taken elsewhere; one before the last reading counts as the last reading.
    void mark_until(Span span, std::int64_t until_ns) noexcept {
        if (recorder_ != nullptr)
            add_piece(span, until_ns);
    }

    /// The step at hand, as far as it is over: its draw (once `end_draw` was called) and pieces. In an `after_batch` callback
    /// ordered after 49 all of the step's pieces are there. Until the next `begin_step`.
    [[nodiscard]] const StepRow& step() const noexcept { return step_; }
    [[nodiscard]] std::span<const SpanRow> step_spans() const noexcept { return std::span{spans_}.first(step_spans_); }

    [[nodiscard]] std::int64_t last_ns() const noexcept { return last_ns_; }
    [[nodiscard]] std::uint32_t steps() const noexcept { return next_step_; }

private:
    struct OpenPass {
        PassRow row;
        std::uint32_t count = 0;
        std::array<SpanRow, max_step_spans> spans{};
    };
    void push_step() noexcept;
    void add_piece(Span, std::int64_t until_ns) noexcept;

    Recorder* recorder_;
    std::int64_t last_ns_;
    std::uint32_t next_step_ = 0;
    enum class Where : std::uint8_t { outside, draw, batch, after } where_ = Where::outside;
    StepRow step_{};
    std::uint32_t step_spans_ = 0;
    std::array<SpanRow, max_step_spans> spans_{};
    ReadingBudget budget_;
    ThreadUsage usage_;
    bool measured_ = false;                        // the step at hand
    std::int64_t cpu_ns_ = 0, run_queue_ns_ = 0;   // at its draw's end
    std::uint32_t depth_ = 0;
    std::array<OpenPass, 3> passes_{};
};

}   // namespace drawpoint
