#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <drawpoint/instrumentation/event.hpp>

namespace drawpoint {

struct Ledger;

/// An action as Lightning's profilers count it.
struct LightningAction {
    std::string name;
    std::uint64_t calls = 0;
    double total_s = 0;
    bool operator==(const LightningAction&) const = default;
};

/// A profile in Lightning's sense. Actions nest, so their totals add up to more than `total_s`; `action_tree` shows the
/// nesting.
struct LightningProfile {
    std::string stage;   ///< "fit", "validate", …; empty: unknown
    double total_s = 0;
    std::vector<LightningAction> actions;   ///< in the order of their first ends
    std::uint64_t steps_folded = 0;         ///< not included in the actions (`RecorderOptions::ledger_bytes`)
};

struct LightningOptions {
    bool extended = true;   ///< with calls and percentages, sorted by percentage; else mean and total, sorted by mean
    bool hannah = false;    ///< the table of Lightning 1.2 that hannah prints: no title, "_" as the total of calls
};
static_assert(std::is_trivially_destructible_v<LightningOptions>);

/// Lightning's table of the profile, byte for byte; without actions only its title. If the total time is 0, percentages
/// are "-". A line below the table gives the number of folded steps. UTF-8.
[[nodiscard]] std::string to_lightning(const LightningProfile&, LightningOptions = {});

/// Formats a number as Lightning prints it: five significant digits and at least one after the point, "1.0",
/// "0.0012346", "1e+04", "1.2346e+04".
[[nodiscard]] std::string lightning_number(double value);

/// The hook that Lightning calls where the loop fires `event`, per kind of pass; empty if it has none there.
struct LightningHook {
    Event event;
    std::string_view train, valid;   ///< the hook of an event outside both is in `train`
};

// clang-format off
/// All hooks. The time of an event's callbacks is its hook's time.
inline constexpr std::array lightning_hooks{
    LightningHook{Event::before_fit, "on_fit_start", ""},
    LightningHook{Event::after_fit, "on_fit_end", ""},
    LightningHook{Event::before_epoch, "on_epoch_start", ""},
    LightningHook{Event::after_epoch, "on_epoch_end", ""},
    LightningHook{Event::before_train, "on_train_epoch_start", ""},
    LightningHook{Event::after_train, "on_train_epoch_end", ""},
    LightningHook{Event::before_validate, "", "on_validation_epoch_start"},
    LightningHook{Event::after_validate, "", "on_validation_epoch_end"},
    LightningHook{Event::before_batch, "on_train_batch_start", "on_validation_batch_start"},
    LightningHook{Event::after_batch, "on_train_batch_end", "on_validation_batch_end"},
    LightningHook{Event::before_backward, "on_before_backward", ""},
    LightningHook{Event::after_backward, "on_after_backward", ""},
    LightningHook{Event::before_step, "on_before_optimizer_step", ""},
    LightningHook{Event::after_step, "on_before_zero_grad", ""},
};
// clang-format on

/// An action of Lightning within a step, from the edge of one of the loop's events to the edge of another.
struct LightningSpan {
    std::string_view train, valid;   ///< its name per kind of pass; empty if it has none there
    Edge from, to;
    Span work;   ///< counted only if this piece happened, so a cancelled optimizer step is not
};

// clang-format off
/// All actions within a step. The first is the draw, including the one that finds the end of the data.
/// `run_training_epoch` (`lightning_epoch`) is the whole epoch with its validation.
inline constexpr std::array lightning_spans{
    LightningSpan{"[_TrainingEpochLoop].train_dataloader_next", "[_EvaluationLoop].val_next",
                  {Event::before_draw, false}, {Event::before_batch, false}, span_of(Event::before_draw)},
    LightningSpan{"training_step", "validation_step",
                  {Event::before_batch, true}, {Event::after_loss, true}, Span::forward},
    LightningSpan{"backward", "", {Event::before_backward, true}, {Event::after_backward, false}, Span::backward},
    LightningSpan{"optimizer_step", "", {Event::before_step, true}, {Event::after_step, false}, Span::opt_step},
    LightningSpan{"optimizer_zero_grad", "", {Event::after_step, true}, {Event::after_batch, false}, Span::zero_grad},
    LightningSpan{"run_training_batch", "", {Event::before_batch, false}, {Event::after_batch, true},
                  span_of(Event::before_batch)},
};
// clang-format on
inline constexpr std::string_view lightning_epoch = "run_training_epoch";

/// The name of an action in the older Lightning that hannah uses ("get_train_batch"), or the same name.
[[nodiscard]] std::string_view older_lightning_name(std::string_view name) noexcept;

/// Lightning's actions from a whole recording of `fit`: the hooks, the spans of which both edges happened, and the
/// regions of user code by name. A region with the name of an action of the loop is omitted, since the loop measures
/// that action itself. O(ledger). Any thread.
[[nodiscard]] LightningProfile lightning_actions(const Ledger&);

/// A node of `action_tree`, in nanoseconds.
struct ActionNode {
    std::string name;
    std::uint64_t calls = 0;
    std::int64_t total_ns = 0;
    std::int64_t self_ns = 0;   ///< total minus the children's totals
    std::vector<ActionNode> children;
    bool operator==(const ActionNode&) const = default;
};

/// The time as trees, in which `self_ns` counts every nanosecond once: the passes with their steps and pieces, then
/// each thread's nested regions. The loop's thread may be in both. O(ledger). Any thread.
[[nodiscard]] std::vector<ActionNode> action_tree(const Ledger&);

/// The trees as text for a terminal: calls, total, self, and self's share of its tree (adding up to 100 %). UTF-8.
[[nodiscard]] std::string action_tree_text(std::span<const ActionNode> trees);

}   // namespace drawpoint
