#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace drawpoint {

// clang-format off
/// The events of a training loop, in the order of fastai's list, with fastxtend's `before_draw`.
enum class Event : std::uint8_t {
    after_create, before_fit, before_epoch, before_train, before_draw, before_batch, after_pred, after_loss,
    before_backward, after_cancel_backward, after_backward, before_step, after_cancel_step, after_step,
    after_cancel_batch, after_batch, after_cancel_train, after_train, before_validate, after_cancel_validate,
    after_validate, after_cancel_epoch, after_epoch, after_cancel_fit, after_fit,
};
// clang-format on
inline constexpr std::size_t event_count = 25;

// clang-format off
/// What a piece of the loop's time was spent on. The first `event_count` are the callbacks of the event of that name;
/// the others are the loop's own work. Pieces tile the loop's time: one clock reading ends a piece and begins the next.
enum class Span : std::uint8_t {
    // 0 … 24: the callbacks of Event{n}
    starved = event_count,   ///< in a draw: the batch did not exist yet
    handoff,                 ///< in a draw: the batch existed, the loop had not resumed
    transfer,                ///< in a draw: the loop waited for the copy to the device
    forward, loss, backward, opt_step, zero_grad,   ///< the learner's own work, without any callback
    callbacks,   ///< callbacks with an order up to -9 or above 49, outside the two stamps of every event
    other,       ///< the loop's own bookkeeping inside a step
    between,     ///< outside every step: after one step's end and before the next draw, or around a pass's steps
    device,      ///< outside every step: at the end of a pass the loop waited until the device had done its work
};
// clang-format on
inline constexpr std::size_t span_count = event_count + 12;

/// The callbacks of `event`, as a piece of time.
constexpr Span span_of(Event event) noexcept { return static_cast<Span>(event); }

/// Which kind of pass over data a step belongs to.
enum class Phase : std::uint8_t { train, valid };

/// What a pass (`PassRow`) covers.
enum class PassKind : std::uint8_t { fit, epoch, train, valid };

/// How a step ended. `cancelled`: a callback threw a cancel (loop/cancel.hpp), of any level, in it. `failed`: another
/// exception left it.
enum class StepStatus : std::uint8_t { complete, cancelled, failed };

// clang-format off
/// The rows of a report: fastxtend's measures, then the pieces that make the columns add up.
enum class Action : std::uint8_t {
    fit, epoch, train, valid,
    step, draw, batch, forward, predict, loss, backward, opt_step, zero_grad,
    callbacks,   ///< inside the batch, in none of the actions above (those of `after_batch` and of cancels)
    other, between, end_of_data,
};
// clang-format on
inline constexpr std::size_t action_count = 17;

/// One end of an action: just before (`end == false`) or just after the callbacks of `event`.
struct Edge {
    Event event;
    bool end;
};

/// The definition of one action: the time from one edge to another.
struct ActionSpan {
    Action action;
    Edge from, to;
    bool in_train, in_valid;   ///< whether steps of this phase have it; both false: not part of a step
};

// clang-format off
/// Every measured action, as data: reports, tests and documentation iterate over it. `step` is draw + batch.
inline constexpr std::array action_spans{
    ActionSpan{Action::fit, {Event::before_fit, false}, {Event::after_fit, true}, false, false},
    ActionSpan{Action::epoch, {Event::before_epoch, false}, {Event::after_epoch, true}, false, false},
    ActionSpan{Action::train, {Event::before_train, false}, {Event::after_train, true}, false, false},
    ActionSpan{Action::valid, {Event::before_validate, false}, {Event::after_validate, true}, false, false},
    ActionSpan{Action::draw, {Event::before_draw, false}, {Event::before_batch, false}, true, true},
    ActionSpan{Action::batch, {Event::before_batch, false}, {Event::after_batch, true}, true, true},
    ActionSpan{Action::forward, {Event::before_batch, false}, {Event::after_pred, true}, true, false},
    ActionSpan{Action::predict, {Event::before_batch, false}, {Event::after_pred, true}, false, true},
    ActionSpan{Action::loss, {Event::after_pred, true}, {Event::after_loss, true}, true, true},
    ActionSpan{Action::backward, {Event::before_backward, false}, {Event::before_step, false}, true, false},
    ActionSpan{Action::opt_step, {Event::before_step, false}, {Event::after_step, true}, true, false},
    ActionSpan{Action::zero_grad, {Event::after_step, true}, {Event::after_batch, false}, true, false},
};
// clang-format on

/// The name used in code, report, JSON and trace alike. Static storage. O(1).
[[nodiscard]] std::string_view name_of(Event) noexcept;
[[nodiscard]] std::string_view name_of(Span) noexcept;
[[nodiscard]] std::string_view name_of(Phase) noexcept;
[[nodiscard]] std::string_view name_of(PassKind) noexcept;
[[nodiscard]] std::string_view name_of(StepStatus) noexcept;
[[nodiscard]] std::string_view name_of(Action) noexcept;

}   // namespace drawpoint
