#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/event.hpp>
#include <drawpoint/instrumentation/recorder/loop_track.hpp>

namespace drawpoint {

/// A set of events.
class EventSet {
public:
    constexpr EventSet() noexcept = default;
    constexpr EventSet(std::initializer_list<Event> events) noexcept {
        for (const Event event : events)
            bits_ |= bit(event);
    }
    [[nodiscard]] static constexpr EventSet all() noexcept {
        EventSet set;
        set.bits_ = (1u << event_count) - 1;
        return set;
    }
    [[nodiscard]] constexpr bool contains(Event event) const noexcept { return (bits_ & bit(event)) != 0; }
    [[nodiscard]] constexpr EventSet without(Event event) const noexcept {
        EventSet set = *this;
        set.bits_ &= ~bit(event);
        return set;
    }
    constexpr EventSet& operator|=(const EventSet& other) noexcept {
        bits_ |= other.bits_;
        return *this;
    }
    bool operator==(const EventSet&) const = default;

private:
    static constexpr std::uint32_t bit(Event event) noexcept { return 1u << static_cast<unsigned>(event); }
    std::uint32_t bits_ = 0;
};

/// The events of a single batch, the only ones that `run_train` and `run_valid` switch off. As in fastai,
/// `after_cancel_step` is not among them.
inline constexpr EventSet inner_loop_events{
    Event::before_draw,     Event::before_batch,          Event::after_pred,     Event::after_loss,
    Event::before_backward, Event::after_cancel_backward, Event::after_backward, Event::before_step,
    Event::after_step,      Event::after_cancel_batch,    Event::after_batch};

/// The event with this name; throws std::invalid_argument "missing NAME" if there is none.
[[nodiscard]] Event event_named(std::string_view name);

/// The position of the loop, as callbacks see it. Callbacks should only read it: the loop counts with these members.
struct LoopState {
    /// `FitOptions::epochs`; the current epoch, from 0. In `after_fit`, `epoch` is the number of epochs that have
    /// ended, those before `first_epoch` included; after a CancelFit, the epoch that it left.
    std::size_t epochs = 0, epoch = 0;
    /// This fit goes on with an earlier one, whose record callbacks keep: `first_epoch` > 0 or `FitOptions::resumed`.
    bool resumed = false;
    /// Batches in the current pass; nullopt: unknown. In `before_train` and `before_validate` this and `batch` still
    /// have the values of the pass before.
    std::optional<std::size_t> batches;
    std::size_t batch = 0;          ///< draws of this pass before the current one, skipped ones included
    std::size_t batch_size = 0;     ///< samples in the last batch drawn; 0 before the first draw
    std::optional<bool> training;   ///< nullopt: outside a training or validation pass
    /// Loss of the current step, set after `after_loss` and kept until the next step begins. nullopt before that,
    /// without `FitOptions::record_loss`, or if the batch has no targets. When training on a device with a
    /// LateLossLearner it is that of an earlier training step, each at most once and in order, or nullopt.
    std::optional<double> loss;
    /// Training batches of this fit that were completed, or left by a CancelBatch, CancelStep or CancelBackward.
    /// Skipped draws do not count, nor does a batch left by the cancel of an outer level.
    std::size_t train_steps = 0;
    std::string cancel_reason;          ///< the reason that the last cancel of this fit gave; empty: none
    const LoopTrack* track = nullptr;   ///< the finished pieces of the current step; null: no recorder
};

/// An object that acts at events of the loop. It says which events it wants; the others cost it nothing. It is called
/// on the loop's thread. It may throw a Cancel (cancel.hpp); any other exception leaves the fit with its type, see
/// `CallbackList::fire`. Most callbacks are written as an `EventCallback` (event_callback.hpp): a class with a member
/// function for each event it cares about.
class Callback {
public:
    virtual ~Callback() = default;
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;
    /// The events it wants. Asked once, when it is added.
    [[nodiscard]] virtual EventSet events() const noexcept = 0;
    /// Callbacks with a lower order run earlier, equal ones in the order in which they were added. From -8 to 49 a
    /// callback's time counts towards its event, between the timestamps taken after the callbacks of order -9 and after
    /// those of 49; otherwise it is reported separately as `callbacks`. Asked once, when it is added.
    [[nodiscard]] virtual int order() const noexcept { return 0; }
    virtual void on(Event event, LoopState& state) = 0;
    /// Called when a fit with its list has ended, normally or by an exception (`CallbackList::reset_run`), but not
    /// after `validate`; may be called twice for one fit. Returns true to be removed from the list.
    virtual bool fit_over() noexcept { return false; }

    /// false: it receives no event until the current fit, or the next one, ends, which resets it to true; `validate`
    /// does not reset it.
    bool run = true;
    bool run_train = true;   ///< whether the events of a training batch reach it
    bool run_valid = true;   ///< whether the events of a validation batch reach it
};

/// The callbacks of a fit, in their order. They must outlive the list, or be removed before they go. The list may be
/// changed while the loop runs, also by a callback: one that is added joins at the next event, one that is removed is
/// not called again. The loop's thread only.
class CallbackList {
public:
    /// A callback that is added twice is called twice for each event.
    void add(Callback& callback);
    /// Removes it as often as it was added; no effect if it is not in the list.
    void remove(Callback& callback) noexcept;

    /// Called when a fit or a validation begins. The first call for this list fires `after_create`, before any level of
    /// the loop, so that a cancel thrown there is not caught. Callbacks added later never receive that event.
    void open(LoopState& state, LoopTrack& track);

    /// Runs the callbacks of `event` and records the time of each part. Without any it costs one comparison and no
    /// clock reading. An exception of a callback skips the event's remaining callbacks and propagates as the same
    /// object. A Cancel is unchanged. Any other std::runtime_error or std::logic_error that does not override what()
    /// gets its message replaced, once, by "Exception occured in `NAME` when calling event `EVENT`:\n\tMESSAGE".
    /// `last_error()` returns that sentence for every exception that is no Cancel.
    void fire(Event event, LoopState& state, LoopTrack& track) {
        if (wanted_.contains(event)) [[unlikely]] {
            fire_wanted(event, state, track);
            return;
        }
        // A piece of length 0, which marks where the event's actions begin.
        track.mark_until(span_of(event), track.last_ns());
        if (event == Event::after_fit)
            reset_run();
    }

    /// Sets every callback's `run` to true and calls its `fit_over()`: after `after_fit`, and however a fit ends.
    void reset_run() noexcept;

    /// The sentence that `fire` makes of the last exception, other than a Cancel, that a callback threw since `open()`;
    /// empty if none did.
    [[nodiscard]] const std::string& last_error() const noexcept { return last_error_; }

    /// The callbacks that want `event`, in the order in which they run, including those that `run`, `run_train` or
    /// `run_valid` switches off.
    [[nodiscard]] std::vector<const Callback*> of(Event event) const;

private:
    struct Entry {
        Callback* callback;   // null: removed during fire()
        EventSet events;
        int order;
    };
    void fire_wanted(Event event, LoopState& state, LoopTrack& track);
    void call(Event event, LoopState& state, LoopTrack& track);
    void invoke(Callback& callback, Event event, LoopState& state);
    void explain_error(std::string_view name, Event event) noexcept;
    void insert(const Entry& entry);
    void end_firing() noexcept;
    void refresh_wanted() noexcept;

    std::vector<Entry> entries_, added_;
    EventSet wanted_;
    int firing_ = 0;
    bool changed_ = false;   // a callback was added or removed during fire()
    bool created_ = false;
    std::string last_error_;
};

}   // namespace drawpoint
