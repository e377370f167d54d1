#pragma once

#include <cstddef>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include <asio/cancellation_type.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include <drawpoint/loop/callback.hpp>
#include <drawpoint/loop/cancel.hpp>
#include <drawpoint/loop/learner.hpp>
#include <drawpoint/pipeline/loader/core/batch_source.hpp>

namespace drawpoint {

struct FitOptions {
    std::size_t epochs = 1;        ///< number of epochs, counting those before first_epoch; ≥ 0
    std::size_t first_epoch = 0;   ///< for a resumed run: the epochs already finished
    bool resumed = false;          ///< for a run resumed within an epoch; implied by first_epoch > 0
    /// 0: no limit. Once this fit has made this many steps (`LoopState::train_steps`), its training pass ends; that
    /// epoch's validation still runs, and no further epoch begins.
    std::size_t max_steps = 0;
    /// Asks the learner for each step's loss, which is counted as `other`. That waits for a device, unless the learner
    /// can keep the loss (LateLossLearner) and the step trains: then the recording has the loss if it times the step.
    bool record_loss = true;
};
static_assert(std::is_trivially_destructible_v<FitOptions>);

namespace detail {

/// What the coroutines of one fit share, so that the loop below reads as the loop.
struct Loop {
    Loop(Recorder* recorder, CallbackList& list, const FitOptions& fit_options)
        : track{recorder}, callbacks{&list}, options{fit_options} {
        state.epochs = options.epochs;
        state.epoch = options.first_epoch;
        state.resumed = options.resumed || options.first_epoch > 0;
        state.track = recorder != nullptr ? &track : nullptr;
    }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    void fire(Event event) { callbacks->fire(event, state, track); }
    [[nodiscard]] std::optional<double> step_loss() const noexcept { return keeps_loss ? std::nullopt : state.loss; }
    [[nodiscard]] bool out_of_steps() const noexcept {
        return options.max_steps != 0 && state.train_steps >= options.max_steps;
    }

    LoopTrack track;
    CallbackList* callbacks;
    FitOptions options;
    LoopState state;
    bool keeps_loss = false;   // of the current step, so that state.loss is another's
};

/// Re-enables every callback (`run`) however the fit ends.
class RunReset {
public:
    explicit RunReset(CallbackList& callbacks) noexcept : callbacks_{&callbacks} {}
    RunReset(const RunReset&) = delete;
    RunReset& operator=(const RunReset&) = delete;
    ~RunReset() { callbacks_->reset_run(); }

private:
    CallbackList* callbacks_;
};

/// Ends a pass in the recording however its level is left, also when a suspended loop is destroyed.
class PassScope {
public:
    PassScope(LoopTrack& track, PassKind kind, std::size_t epoch) noexcept : track_{&track} {
        track.begin_pass(kind, static_cast<std::uint32_t>(epoch));
    }
    PassScope(const PassScope&) = delete;
    PassScope& operator=(const PassScope&) = delete;
    ~PassScope() {
        track_->mark(Span::between);   // the piece that an exception interrupted, if any
        track_->end_pass();
    }

private:
    LoopTrack* track_;
};

/// Ends a step in the same way: as failed, unless `end()` was called.
class StepScope {
public:
    StepScope(LoopTrack& track, Phase phase, const LoopState& state) noexcept : track_{&track} {
        track.begin_step(phase, static_cast<std::uint32_t>(state.epoch), static_cast<std::uint32_t>(state.batch));
    }
    StepScope(const StepScope&) = delete;
    StepScope& operator=(const StepScope&) = delete;
    ~StepScope() {
        if (!open_)
            return;
        track_->mark(drawn_ ? Span::other : Span::starved);   // the piece that was interrupted
        track_->end_step(StepStatus::failed, std::nullopt);
    }
    template <class Batch>
    void end_draw(const Batch& batch) noexcept {
        const auto size = static_cast<std::uint32_t>(batch.size());
        if constexpr (NumberedBatch<Batch>)
            track_->end_draw(size, static_cast<std::uint32_t>(batch.number()));
        else
            track_->end_draw(size);
        drawn_ = true;
    }
    void end(StepStatus status, std::optional<double> loss) noexcept {
        track_->end_step(status, loss);
        open_ = false;
    }
    void end_of_data() noexcept {
        track_->end_of_data();
        open_ = false;
    }

private:
    LoopTrack* track_;
    bool open_ = true, drawn_ = false;
};

/// Makes the learner release a batch however its step ends, so that nobody holds the batch's memory when it is given
/// back.
template <class L>
class BatchScope {
public:
    explicit BatchScope(L& learner) noexcept : learner_{&learner} {}
    BatchScope(const BatchScope&) = delete;
    BatchScope& operator=(const BatchScope&) = delete;
    ~BatchScope() {
        if constexpr (ForgettingLearner<L>)
            learner_->end_batch();
    }

private:
    L* learner_;
};

/// Ends a pass's steps however it is left, once the device has done their work.
template <class Pass>
class DrainScope {
public:
    DrainScope(LoopTrack& track, Pass& pass) noexcept : track_{&track}, pass_{&pass} {}
    DrainScope(const DrainScope&) = delete;
    DrainScope& operator=(const DrainScope&) = delete;
    ~DrainScope() {
        if constexpr (DrainedSource<Pass>) {
            track_->end_steps();
            pass_->drain();
            track_->mark(Span::device);
        }
    }

private:
    LoopTrack* track_;
    Pass* pass_;
};

/// Splits the draw at the timestamps that the batch carries: waiting for the device, until the batch was ready, its
/// hand-over, and its transfer to the device.
template <class Batch>
void mark_draw(LoopTrack& track, const Batch& batch) noexcept {
    if constexpr (StampedBatch<Batch>) {
        const DrawStamps stamps = batch.draw_stamps();
        if (stamps.taken_ns != no_stamp) {
            if (stamps.waited_ns != no_stamp)
                track.mark_until(Span::transfer, stamps.waited_ns);
            if (stamps.offered_ns != no_stamp)
                track.mark_until(Span::starved, stamps.offered_ns);
            if (stamps.transferred_ns != no_stamp) {
                track.mark_until(Span::handoff, stamps.transferred_ns);
                track.mark_until(Span::transfer, stamps.taken_ns);
            } else {
                track.mark_until(Span::handoff, stamps.taken_ns);
            }
            return;
        }
    }
    track.mark(Span::starved);
}

/// One level of the loop that does not suspend: the before event, the body, on the level's cancel the after_cancel
/// event, and then the after event. Any other exception leaves the level without further events.
template <class Cancelled, class Body>
bool with_events(Loop& loop, Event before, Event after_cancel, Event after, Body body) {
    bool cancelled = false;
    try {
        loop.fire(before);
        body();
    } catch (const Cancelled& cancel) {
        cancelled = true;
        loop.state.cancel_reason = cancel.reason();
        loop.track.mark(Span::other);   // the time of the learner, if the learner threw it and not a callback
    }
    if (cancelled)
        loop.fire(after_cancel);
    loop.fire(after);
    return cancelled;
}

/// Whether a batch has targets; true for types that do not say.
template <class Batch>
bool has_targets(const Batch& batch) {
    if constexpr (TargetedBatch<Batch>)
        return batch.has_targets();
    else
        return true;
}

/// Reads the loss of a step, or keeps it for later.
template <class L, class Batch>
void read_loss(Loop& loop, L& learner, Batch& batch, bool training) {
    if constexpr (LateLossLearner<L, Batch>) {
        if (training && learner.keep_loss(batch)) {
            loop.keeps_loss = true;
            loop.state.loss = batch.next_loss();
            return;
        }
    }
    loop.state.loss = learner.loss_value();
}

/// Everything from before_batch to after_batch. Returns whether any part of it was cancelled.
template <class L, class Batch>
bool one_batch(Loop& loop, L& learner, Batch& batch, bool training) {
    LoopTrack& track = loop.track;
    bool cancelled = false;
    const auto work = [&] {
        learner.forward(batch);
        track.mark(Span::forward);
        loop.fire(Event::after_pred);
        const bool targets = has_targets(batch);
        if (targets)
            learner.loss(batch);
        if constexpr (WorkingBatch<Batch>)
            batch.end_forward();
        track.mark(Span::loss);
        loop.fire(Event::after_loss);
        if (targets && loop.options.record_loss)
            read_loss(loop, learner, batch, training);
        track.mark(Span::other);
        if (!training || !targets)
            return;
        cancelled |= with_events<CancelBackward>(loop, Event::before_backward, Event::after_cancel_backward,
                                                 Event::after_backward, [&] {
                                                     learner.backward();
                                                     track.mark(Span::backward);
                                                 });
        cancelled |=
            with_events<CancelStep>(loop, Event::before_step, Event::after_cancel_step, Event::after_step, [&] {
                learner.opt_step();
                track.mark(Span::opt_step);
            });
        learner.zero_grad();
        track.mark(Span::zero_grad);
    };
    const auto body = [&] {
        work();
        if constexpr (WorkingBatch<Batch>)
            batch.end_work();
    };
    cancelled |=
        with_events<CancelBatch>(loop, Event::before_batch, Event::after_cancel_batch, Event::after_batch, body);
    return cancelled;
}

/// Fires before_draw. Returns false, so that the draw is skipped, if a callback cancelled the batch, step or backward.
inline bool before_draw(Loop& loop, StepScope& step) {
    try {
        loop.fire(Event::before_draw);
        return true;
    } catch (const CancelBatch& cancel) {
        loop.state.cancel_reason = cancel.reason();
    } catch (const CancelStep& cancel) {
        loop.state.cancel_reason = cancel.reason();
    } catch (const CancelBackward& cancel) {
        loop.state.cancel_reason = cancel.reason();
    } catch (const Cancel&) {   // of an outer level
        step.end(StepStatus::cancelled, std::nullopt);
        throw;
    }
    step.end(StepStatus::cancelled, std::nullopt);
    return false;
}

/// Batches of a pass that were drawn before it began; 0 for types that do not say.
template <class Pass>
std::size_t drawn_before(const Pass& pass) {
    if constexpr (ContinuedSource<Pass>)
        return pass.drawn();
    else
        return 0;
}

/// All draws and steps of one pass.
template <class L, class Source>
Awaitable<void> all_batches(Loop& loop, L& learner, Source& source, bool training, EpochOptions epoch_options) {
    LoopTrack& track = loop.track;
    LoopState& state = loop.state;
    const Phase phase = training ? Phase::train : Phase::valid;
    learner.begin_phase(training);
    epoch_options.track = state.track != nullptr ? &track : nullptr;
    auto pass = source.epoch(state.epoch, epoch_options);
    const DrainScope drain(track, pass);
    static_assert(Learner<L, typename decltype(pass)::Batch>);
    state.batches = pass.size();
    track.mark(Span::between);
    const asio::this_coro::cancellation_state_t of_this_coroutine;
    const auto at_begin = co_await of_this_coroutine;
    const bool cancellable = at_begin.slot().is_connected();
    asio::use_awaitable_t<> token;
    for (state.batch = drawn_before(pass); !state.batches || state.batch < *state.batches; ++state.batch) {
        if (training && loop.out_of_steps())
            break;
        if (cancellable) {   // lets the event loop run what may cancel: draws that are ready do not suspend
            co_await asio::post(token);
            track.mark(Span::between);
            const auto cancellation = co_await of_this_coroutine;
            if (cancellation.cancelled() != asio::cancellation_type::none)
                throw std::system_error{asio::error::make_error_code(asio::error::operation_aborted)};
        }
        StepScope step(track, phase, state);
        state.loss.reset();
        loop.keeps_loss = false;
        if (!before_draw(loop, step))
            continue;                        // cancelled: this turn is used up, but no sample is consumed
        auto batch = co_await pass.next();   // the draw: all waiting for data is here
        if (!batch) {
            track.mark(Span::starved);
            step.end_of_data();
            state.batch = state.batches.value_or(state.batch);   // a source may leave batches out
            break;
        }
        mark_draw(track, *batch);
        state.batch_size = batch->size();
        step.end_draw(*batch);
        try {
            const BatchScope held(learner);
            const bool cancelled = one_batch(loop, learner, *batch, training);
            step.end(cancelled ? StepStatus::cancelled : StepStatus::complete, loop.step_loss());
        } catch (const Cancel&) {   // of an outer level
            track.mark(Span::other);
            step.end(StepStatus::cancelled, loop.step_loss());
            throw;
        }
        state.train_steps += training ? 1 : 0;
        batch.reset();   // giving the batch back, and the loop's own turn, are counted between the steps
        track.mark(Span::between);
    }
}

/// A pass with its events. `Cancelled` is the cancel of its level.
template <class Cancelled, class L, class Source>
Awaitable<void> one_pass(Loop& loop, L& learner, Source& source, bool training, EpochOptions epoch_options) {
    PassScope pass(loop.track, training ? PassKind::train : PassKind::valid, loop.state.epoch);
    bool cancelled = false;
    loop.state.training = training;
    try {
        loop.fire(training ? Event::before_train : Event::before_validate);
        co_await all_batches(loop, learner, source, training, epoch_options);
    } catch (const Cancelled& cancel) {
        cancelled = true;
        loop.state.cancel_reason = cancel.reason();
    }
    loop.track.mark(Span::between);   // the source's work at the end of its pass
    loop.track.end_steps();
    if (cancelled)
        loop.fire(training ? Event::after_cancel_train : Event::after_cancel_validate);
    loop.fire(training ? Event::after_train : Event::after_validate);
}

/// Stands for a missing validation source.
struct NoSource {};

template <class L, class Train, class Valid>
Awaitable<void> one_epoch(Loop& loop, L& learner, Train& train, Valid& valid) {
    PassScope pass(loop.track, PassKind::epoch, loop.state.epoch);
    bool cancelled = false;
    const EpochOptions train_options{.next_epoch = loop.state.epoch + 1 < loop.state.epochs};
    try {
        loop.fire(Event::before_epoch);
        co_await one_pass<CancelTrain>(loop, learner, train, true, train_options);
        if constexpr (!std::is_same_v<Valid, NoSource>) {
            const EpochOptions valid_options{};
            co_await one_pass<CancelValid>(loop, learner, valid, false, valid_options);
        }
    } catch (const CancelEpoch& cancel) {
        cancelled = true;
        loop.state.cancel_reason = cancel.reason();
    }
    loop.state.training.reset();
    if (cancelled)
        loop.fire(Event::after_cancel_epoch);
    loop.fire(Event::after_epoch);
}

template <class L, class Train, class Valid>
Awaitable<void> fit(L& learner, Train& train, Valid& valid, FitOptions options, CallbackList& callbacks,
                    Recorder* recorder) {
    RunReset run_reset(callbacks);
    Loop loop(recorder, callbacks, options);
    callbacks.open(loop.state, loop.track);
    PassScope pass(loop.track, PassKind::fit, 0);
    bool cancelled = false;
    try {
        loop.fire(Event::before_fit);
        for (; loop.state.epoch < options.epochs && !loop.out_of_steps(); ++loop.state.epoch)
            co_await one_epoch(loop, learner, train, valid);
    } catch (const CancelFit& cancel) {
        cancelled = true;
        loop.state.cancel_reason = cancel.reason();
        if (recorder != nullptr && !cancel.reason().empty())
            recorder->set_fact(facts::stopped, cancel.reason());
    }
    loop.state.training.reset();
    if (cancelled)
        loop.fire(Event::after_cancel_fit);
    loop.fire(Event::after_fit);
}

template <class L, class Train>
Awaitable<void> fit_alone(L& learner, Train& train, FitOptions options, Recorder* recorder) {
    CallbackList no_callbacks;
    NoSource no_validation;
    co_await fit(learner, train, no_validation, options, no_callbacks, recorder);
}

template <class L, class Train>
Awaitable<void> fit_train_only(L& learner, Train& train, FitOptions options, CallbackList& callbacks,
                               Recorder* recorder) {
    NoSource no_validation;
    co_await fit(learner, train, no_validation, options, callbacks, recorder);
}

template <class L, class Source>
Awaitable<void> validate(L& learner, Source& source, CallbackList& callbacks, Recorder* recorder) {
    const FitOptions options;
    Loop loop(recorder, callbacks, options);
    callbacks.open(loop.state, loop.track);
    const EpochOptions epoch_options{};
    co_await one_pass<CancelValid>(loop, learner, source, false, epoch_options);
}

}   // namespace detail

/// Trains `learner` on `train` for a number of epochs, with a validation pass after each. Fires the events of event.hpp
/// in their order and records in `recorder` what all of its time was spent on (LoopTrack). Lazy: nothing happens until
/// it is awaited or passed to `run()`. It stays on the loop's executor. Batches need a `size()` (SizedBatch); what else
/// they may have is in batch_source.hpp and learner.hpp (StampedBatch, NumberedBatch, TargetedBatch).
///
/// Throws what callbacks, learner or source throw, except the cancels of its own levels; only exceptions from callbacks
/// get a new message (`CallbackList::fire`). Can be cancelled through its cancellation slot, between two steps and in a
/// draw: then throws std::system_error with asio's operation_aborted, and no further event. All arguments passed by
/// reference must outlive it. Destroying it while it is suspended closes the passes in the recording. With a
/// DataLoader, `recorder` should be its Runtime's, so that the loop and the loader are in one ledger and on one clock;
/// this is not checked. In distributed training each rank runs its own loop with its own callbacks and recorder;
/// nothing is summed over ranks.
template <class L, EpochSource Train, EpochSource Valid>
[[nodiscard]] Awaitable<void> fit(L& learner, Train& train, Valid& valid, FitOptions options, CallbackList& callbacks,
                                  Recorder& recorder) {
    return detail::fit(learner, train, valid, options, callbacks, &recorder);
}

/// The same without validation.
template <class L, EpochSource Train>
[[nodiscard]] Awaitable<void> fit(L& learner, Train& train, FitOptions options, CallbackList& callbacks,
                                  Recorder& recorder) {
    return detail::fit_train_only(learner, train, options, callbacks, &recorder);
}

/// The same without callbacks.
template <class L, EpochSource Train>
[[nodiscard]] Awaitable<void> fit(L& learner, Train& train, FitOptions options, Recorder& recorder) {
    return detail::fit_alone(learner, train, options, &recorder);
}

// The same without a recorder: no clock is read, and an event that no callback wants costs one comparison.
template <class L, EpochSource Train, EpochSource Valid>
[[nodiscard]] Awaitable<void> fit(L& learner, Train& train, Valid& valid, FitOptions options, CallbackList& callbacks) {
    return detail::fit(learner, train, valid, options, callbacks, nullptr);
}
template <class L, EpochSource Train>
[[nodiscard]] Awaitable<void> fit(L& learner, Train& train, FitOptions options, CallbackList& callbacks) {
    return detail::fit_train_only(learner, train, options, callbacks, nullptr);
}
template <class L, EpochSource Train>
[[nodiscard]] Awaitable<void> fit(L& learner, Train& train, FitOptions options = {}) {
    return detail::fit_alone(learner, train, options, nullptr);
}

// A temporary passed to a lazy coroutine would be destroyed before the coroutine starts.
template <class L, class Source, class... Rest>
    requires(!std::is_lvalue_reference_v<L> || !std::is_lvalue_reference_v<Source>)
Awaitable<void> fit(L&&, Source&&, Rest&&...) = delete;

/// One pass over `source` without training: the validation pass of `fit`, as epoch 0, with the loss of each batch read.
/// Catches what a validation pass of `fit` catches (CancelValid; CancelBatch within a batch; and in `before_draw`
/// CancelBatch, CancelStep and CancelBackward); other cancels propagate. Neither resets `Callback::run` nor calls
/// `fit_over`.
template <class L, EpochSource Source>
[[nodiscard]] Awaitable<void> validate(L& learner, Source& source, CallbackList& callbacks, Recorder& recorder) {
    return detail::validate(learner, source, callbacks, &recorder);
}
/// The same without a recorder.
template <class L, EpochSource Source>
[[nodiscard]] Awaitable<void> validate(L& learner, Source& source, CallbackList& callbacks) {
    return detail::validate(learner, source, callbacks, nullptr);
}
template <class L, class Source, class... Rest>
    requires(!std::is_lvalue_reference_v<L> || !std::is_lvalue_reference_v<Source>)
Awaitable<void> validate(L&&, Source&&, Rest&&...) = delete;

}   // namespace drawpoint
