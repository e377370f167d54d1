#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <drawpoint/instrumentation/recorder/detail/reading_budget.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/host/detail/thread_usage.hpp>

namespace drawpoint {

/// Tiles the time of a training loop with pieces: every `mark()` reads the clock once, ends a piece there and begins
/// the next, so there are no gaps. What was done since the last mark is in the next piece, whatever it is called; so
/// that a forgotten mark is seen, the edges of passes and the beginnings of steps read the clock once more
/// (`PassRow::unmarked_ns`). The first piece begins when the track is made. Passes nest (fit, epoch, train or
/// valid). Three levels are recorded: what lies in a fourth counts in the third. A step lies in the innermost pass. A
/// step is recorded as a whole, when the time after it ends. A step keeps its first `max_step_spans` pieces (equal
/// neighbours count as one); what further ones lack shows in `drawpoint::max_residual_ns`. A pass of more pieces of its
/// own is recorded as several passes, one after the other. In some steps, chosen
/// at random so that it costs at most 0.15 % of the time, it also measures how long the thread computed and waited for
/// a core, unless the clock is a ManualClock. One thread or strand at a time. Never throws. After the constructor,
/// which names the calling thread "loop", it never allocates. A call that records something may wait for the writer
/// (`Recorder::push`). The recorder must outlive it.
class LoopTrack {
public:
    explicit LoopTrack(Recorder& recorder) noexcept : LoopTrack(&recorder) {}
    /// A null `recorder` records nothing and reads no clock.
    explicit LoopTrack(Recorder* recorder) noexcept
        : recorder_{recorder}, last_ns_{recorder != nullptr ? recorder->now_ns() : 0} {
        if (recorder_ != nullptr)
            recorder_->add_this_thread("loop");
    }
    LoopTrack(const LoopTrack&) = delete;
    LoopTrack& operator=(const LoopTrack&) = delete;

    /// A pass begins at the last reading.
    void begin_pass(PassKind, std::uint32_t epoch) noexcept;
    /// The innermost pass ends at the last reading. Nothing, outside every pass.
    void end_pass() noexcept;

    /// A step begins at the last reading, with its draw. Ends the time after the previous step.
    void begin_step(Phase, std::uint32_t epoch, std::uint32_t batch) noexcept;
    /// The draw ends and the batch begins, at the last reading. `batch`: the batch's own number in its pass, which
    /// replaces the one given to begin_step() (batches out of order).
    void end_draw(std::uint32_t size, std::optional<std::uint32_t> batch = std::nullopt) noexcept;
    /// The step ends at the last reading; what is marked after this is the time between steps. If the draw threw, mark
    /// `Span::starved` and end the step as failed without end_draw().
    void end_step(StepStatus, std::optional<double> loss) noexcept;
    /// No further step follows in this pass: what is marked after this belongs to the pass. Optional: without it, it
    /// belongs to the last step's `between` until the next begin_pass() or end_pass().
    void end_steps() noexcept {
        if (recorder_ != nullptr)
            push_step();
    }
    /// The draw begun by begin_step() found the end of a source of unknown length; it belongs to no step.
    void end_of_data() noexcept;

    /// The time from the last reading until now was spent on `span`, in the current step (or after it, see end_step),
    /// else in the innermost pass. Outside every pass it records nothing and only moves the last reading.
    void mark(Span span) noexcept {
        if (recorder_ != nullptr)
            add_piece(span, recorder_->now_ns());
    }
    /// The same, until a reading taken elsewhere; an earlier one than the last reading counts as the last reading, one
    /// from the future as now. Both are counted in the pass (`PassRow::clamped_ns`, `ahead_ns`), except that
    /// `Span::starved` of a draw may end early. Reads the clock if `until_ns` is later than the last reading.
    void mark_until(Span span, std::int64_t until_ns) noexcept {
        if (recorder_ != nullptr)
            add_piece(span, until_ns == last_ns_ ? until_ns : checked(span, until_ns));
    }

    /// The current step so far, with its draw after `end_draw`, and its pieces (`StepRow::spans` is not set). In an
    /// `after_batch` callback ordered after 49, all pieces of the step are there. Valid until the next `begin_step`.
    [[nodiscard]] const StepRow& step() const noexcept { return step_; }
    [[nodiscard]] std::span<const SpanRow> step_spans() const noexcept { return std::span{spans_}.first(step_spans_); }

    /// Null: nothing is recorded.
    [[nodiscard]] Recorder* recorder() const noexcept { return recorder_; }

    /// The last reading: the end of the last piece.
    [[nodiscard]] std::int64_t last_ns() const noexcept { return last_ns_; }
    /// Steps begun so far, without draws that found the end of the data.
    [[nodiscard]] std::uint32_t steps() const noexcept { return next_step_; }

private:
    struct OpenPass {
        PassRow row;
        std::uint32_t count = 0;
        std::array<SpanRow, max_step_spans> spans{};
    };
    void push_step() noexcept;
    void continue_pass(OpenPass&, std::int64_t at_ns) noexcept;
    void add_piece(Span, std::int64_t until_ns) noexcept;
    [[nodiscard]] std::int64_t checked(Span, std::int64_t until_ns) noexcept;
    /// The innermost pass that is recorded; without one, the first that will be.
    [[nodiscard]] OpenPass& innermost() noexcept {
        const std::size_t level = depth_ < passes_.size() ? depth_ : passes_.size();
        return passes_[level == 0 ? 0 : level - 1];
    }
    /// Time since the last reading; 0 if it is so short that the readings alone explain it.
    [[nodiscard]] std::int64_t since_mark_ns() const noexcept {
        const std::int64_t ns = recorder_->now_ns() - last_ns_;
        return ns >= least_unmarked_ns ? ns : 0;
    }
    static constexpr std::int64_t least_unmarked_ns = 1'000;

    Recorder* recorder_;
    std::int64_t last_ns_;
    std::uint32_t next_step_ = 0;
    enum class Where : std::uint8_t { outside, draw, batch, after } where_ = Where::outside;
    StepRow step_{};
    std::uint32_t step_spans_ = 0;
    std::array<SpanRow, max_step_spans> spans_{};
    ReadingBudget budget_;
    ThreadUsage usage_;
    bool measured_ = false;                        // of the current step
    std::int64_t cpu_ns_ = 0, run_queue_ns_ = 0;   // at the end of its draw
    std::uint32_t depth_ = 0;
    std::array<OpenPass, 3> passes_{};
};

}   // namespace drawpoint
