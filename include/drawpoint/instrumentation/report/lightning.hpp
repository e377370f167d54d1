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

/// A profile in Lightning's sense. Actions nest, so their totals add to more than `total_s`; `action_tree` shows what is whose.
struct LightningProfile {
    std::string stage;   ///< "fit", "validate", …; empty: unknown
    double total_s = 0;
    std::vector<LightningAction> actions;   ///< in the order in which each first ended
    std::uint64_t steps_folded = 0;         ///< not among the actions (`RecorderOptions::ledger_steps`)
};

struct LightningOptions {
    bool extended = true;   ///< with calls and percentages, sorted by those; else mean and total, sorted by the mean
    bool hannah = false;    ///< the table of Lightning 1.2 that hannah prints: no title, "_" for the calls of all
};
static_assert(std::is_trivially_destructible_v<LightningOptions>);

/// Lightning's table of the profile, byte for byte; without actions its title alone. A share of no time is "-". A line
/// below it tells of steps folded. UTF-8.
[[nodiscard]] std::string to_lightning(const LightningProfile&, LightningOptions = {});

/// A number as Lightning prints it: five significant digits and at least one after the point, "1.0", "0.0012346", "1e+04",
/// "1.2346e+04".
[[nodiscard]] std::string lightning_number(double value);

/// The hook that Lightning calls where the loop fires `event`, per kind of pass; empty: it has none there.
struct LightningHook {
    Event event;
    std::string_view train, valid;   ///< an event outside both stands in `train`
};

// clang-format off
/// Hooks, as data. An event's action is the time of its callbacks.
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

/// An action of Lightning within a step, from one edge of the loop's events to another.
struct LightningSpan {
    std::string_view train, valid;   ///< its name by kind of pass; empty: it has none there
    Edge from, to;
    Span work;   ///< the piece without which it did not happen: a cancelled optimizer step is none
};

// clang-format off
/// Actions within a step, as data; the first is the draw, that of the end of data included. `run_training_epoch` is the pass of that name with its validation.
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

/// The name that older Lightning, and so hannah, has for an action ("get_train_batch"), or the name itself.
[[nodiscard]] std::string_view older_lightning_name(std::string_view name) noexcept;

/// Lightning's actions from a recording of `fit`: hooks and spans as above, where both edges happened, and the regions of user
/// code by their names (one called like an action of the loop is that action, measured here by the loop). Of the whole
/// recording. O(ledger). Any thread.
[[nodiscard]] LightningProfile lightning_actions(const Ledger&);

/// A node of `action_tree`, in nanoseconds.
struct ActionNode {
    std::string name;
    std::uint64_t calls = 0;
    std::int64_t total_ns = 0;
    std::int64_t self_ns = 0;   ///< total less that of the children: what no child accounts for
    std::vector<ActionNode> children;
    bool operator==(const ActionNode&) const = default;
};

/// Where the time went as trees in which every nanosecond is counted once, in the column `self`: the passes with their steps
/// and pieces, then each thread's regions by nesting. The loop's own thread may be in both. O(ledger). Any thread.
[[nodiscard]] std::vector<ActionNode> action_tree(const Ledger&);

/// The trees for a terminal: calls, total, self and self's share of its tree, which add to 100 %. UTF-8.
[[nodiscard]] std::string action_tree_text(std::span<const ActionNode> trees);

}   // namespace drawpoint
