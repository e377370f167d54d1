#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/event.hpp>
#include <drawpoint/instrumentation/loop_track.hpp>

namespace drawpoint {

/// A set of events.
class EventSet {
public:
    constexpr EventSet() noexcept = default;
    EventSet(std::initializer_list<Event> events) noexcept {
        for (const Event event : events)
            bits_.set(static_cast<std::size_t>(event));
    }
    [[nodiscard]] bool contains(Event event) const noexcept { return bits_.test(static_cast<std::size_t>(event)); }
    EventSet& operator|=(const EventSet& other) noexcept {
        bits_ |= other.bits_;
        return *this;
    }

private:
    std::bitset<event_count> bits_;
};

/// Where the loop stands, as callbacks see it.
struct LoopState {
    std::size_t epochs = 0, epoch = 0;
    std::optional<std::size_t> batches;   ///< of the pass at hand; nullopt: unknown
    std::size_t batch = 0;                ///< number in its pass
    std::size_t batch_size = 0;           ///< of the batch at hand; 0 before the first draw
    std::optional<bool> training;         ///< nullopt: outside any pass
    std::optional<double> loss;           ///< of the step at hand, once known
    std::size_t train_steps = 0;          ///< training steps finished in this fit
};

/// Something that acts at events of the loop. It says which events it wants; the others cost it nothing. Called on the loop's
/// thread. It may throw a Cancel (cancel.hpp); any other exception leaves the fit unchanged.
class Callback {
public:
    virtual ~Callback() = default;
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;
    /// Asked once, when added.
    [[nodiscard]] virtual EventSet events() const noexcept = 0;
    /// Lower runs earlier; equal: in the order added. Within -9 … 49 its time counts into the event it acts at, outside it is
    /// counted apart as `callbacks`. Asked once, when added.
    [[nodiscard]] virtual int order() const noexcept { return 0; }
    virtual void on(Event event, LoopState& state) = 0;

    bool run = true;         ///< set back to true after after_fit
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

    /// Runs the callbacks of `event` and marks the time each part took. Without any: one comparison, no clock reading.
    void fire(Event event, LoopState& state, LoopTrack& track);

private:
    struct Entry {
        Callback* callback;   // null: removed while firing
        EventSet events;
        int order;
    };
    void call(Event event, LoopState& state, LoopTrack& track);
    void insert(const Entry& entry);
    void end_firing();

    std::vector<Entry> entries_, added_;
    EventSet wanted_;
    int firing_ = 0;
};

}   // namespace drawpoint
