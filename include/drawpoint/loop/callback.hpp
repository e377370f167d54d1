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
    constexpr EventSet& operator|=(const EventSet& other) noexcept {
        bits_ |= other.bits_;
        return *this;
    }
    bool operator==(const EventSet&) const = default;

private:
    static constexpr std::uint32_t bit(Event event) noexcept { return 1u << static_cast<unsigned>(event); }
    std::uint32_t bits_ = 0;
};

/// The events of a single batch: only these are gated by `run_train` and `run_valid`. As in fastai `after_cancel_step` is not
/// among them.
inline constexpr EventSet inner_loop_events{
    Event::before_draw,     Event::before_batch,          Event::after_pred,     Event::after_loss,
    Event::before_backward, Event::after_cancel_backward, Event::after_backward, Event::before_step,
    Event::after_step,      Event::after_cancel_batch,    Event::after_batch};

/// The event of this name; throws std::invalid_argument "missing NAME" when there is none.
[[nodiscard]] Event event_named(std::string_view name);

/// Where the loop stands, as callbacks see it.
struct LoopState {
    std::size_t epochs = 0, epoch = 0;
    std::optional<std::size_t> batches;   ///< of the pass at hand; nullopt: unknown
    std::size_t batch = 0;                ///< number in its pass
    std::size_t batch_size = 0;           ///< of the batch at hand; 0 before the first draw
    std::optional<bool> training;         ///< nullopt: outside any pass
    std::optional<double> loss;           ///< of the step at hand, once known
    std::size_t train_steps = 0;          ///< training steps finished in this fit
    std::string cancel_reason;            ///< what the last cancel of this fit said of its reason; empty: nothing
    const LoopTrack* track = nullptr;   ///< the pieces of the step at hand, as far as they are over; null: no recorder
};

/// Something that acts at events of the loop. It says which events it wants; the others cost it nothing. Called on the loop's
/// thread. It may throw a Cancel (cancel.hpp); any other exception leaves the fit with its type, see `CallbackList::fire`.
/// Most are written as an `EventCallback` (event_callback.hpp): a class with a member function for each event it cares about.
class Callback {
public:
    virtual ~Callback() = default;
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;
    /// Asked once, when added.
    [[nodiscard]] virtual EventSet events() const noexcept = 0;
    /// Lower runs earlier; equal: in the order added. Above -9 and up to 49 its time counts into the event it acts at (a
    /// profiler's two stamps stand there, added last), outside it is counted apart as `callbacks`. Asked once, when added.
    [[nodiscard]] virtual int order() const noexcept { return 0; }
    virtual void on(Event event, LoopState& state) = 0;
    /// A fit that used it is over, whichever way it was left (`CallbackList::reset_run`); may come twice. True: take me off the
    /// list.
    virtual bool fit_over() noexcept { return false; }

    bool run = true;         ///< false: no event reaches it until the fit at hand is over, which sets it back to true
    bool run_train = true;   ///< whether the events of a training batch reach it
    bool run_valid = true;   ///< whether the events of a validation batch reach it
};

/// The callbacks of a fit, in their order. They outlive it. May be changed while the loop runs, also by a callback: one added
/// joins at the next event, one removed is not called again.
class CallbackList {
public:
    void add(Callback& callback);
    /// No effect when it is not there.
    void remove(Callback& callback) noexcept;

    /// What a fit or a validation begins with. The first one that uses the list fires `after_create`, before any level of the
    /// loop: a cancel thrown there is caught by none. Callbacks added later never see that event.
    void open(LoopState& state, LoopTrack& track);

    /// Runs the callbacks of `event` and marks the time each part took. Without any: one comparison, no clock reading. What a
    /// callback throws leaves as the same object, after an event's remaining callbacks are skipped. A Cancel is untouched; any
    /// other std::runtime_error or std::logic_error whose what() is the base's own has its message replaced, once, by "Exception
    /// occured in `NAME` when calling event `EVENT`:\n\tMESSAGE"; of every other exception `last_error()` says it.
    void fire(Event event, LoopState& state, LoopTrack& track) {
        if (wanted_.contains(event)) [[unlikely]] {
            fire_wanted(event, state, track);
            return;
        }
        // A piece without a length, so that actions have their edge.
        track.mark_until(span_of(event), track.last_ns());
        if (event == Event::after_fit)
            reset_run();
    }

    /// Sets every callback's `run` back to true: after `after_fit`, and whichever way a fit is left.
    void reset_run() noexcept;

    /// The sentence of the last exception that a callback threw since `open()`; empty: none did.
    [[nodiscard]] const std::string& last_error() const noexcept { return last_error_; }

    /// The callbacks that want `event`, in the order in which they run.
    [[nodiscard]] std::vector<const Callback*> of(Event event) const;

private:
    struct Entry {
        Callback* callback;   // null: removed while firing
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
    bool changed_ = false;   // while firing: somebody was added or removed
    bool created_ = false;
    std::string last_error_;
};

}   // namespace drawpoint
