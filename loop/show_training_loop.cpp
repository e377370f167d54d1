#include <drawpoint/loop/show_training_loop.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include <drawpoint/loop/callback.hpp>

namespace drawpoint {
namespace {

// fastai's lines in their order; the events of cancelled steps and backward passes are not among them.
// clang-format off
constexpr std::array<std::string_view, 34> lines{
    "Start Fit", "before_fit",
    "Start Epoch Loop", "before_epoch",
    "Start Train", "before_train",
    "Start Batch Loop", "before_draw", "before_batch", "after_pred", "after_loss", "before_backward", "before_step",
    "after_step", "after_cancel_batch", "after_batch", "End Batch Loop",
    "End Train", "after_cancel_train", "after_train",
    "Start Valid", "before_validate",
    "Start Batch Loop", "**CBs same as train batch**", "End Batch Loop",
    "End Valid", "after_cancel_validate", "after_validate",
    "End Epoch Loop", "after_cancel_epoch", "after_epoch",
    "End Fit", "after_cancel_fit", "after_fit"};
// clang-format on

constexpr std::size_t indentation = 2, name_width = 15;

std::string names_of(const CallbackList& callbacks, std::string_view event) {
    std::string names;
    for (const Callback* callback : callbacks.of(event_named(event)))
        names.append(names.empty() ? "" : ", ").append(callback->name());
    return names;
}

}   // namespace

std::string show_training_loop(const CallbackList& callbacks) {
    std::string text;
    std::size_t indent = 0;
    for (const std::string_view line : lines) {
        if (line.starts_with("End"))
            indent -= indentation;
        text.append(indent, ' ');
        if (line.starts_with("Start") || line.starts_with("End")) {
            text.append(line);
        } else {
            text.append(" - ").append(line).append(name_width - std::min(name_width, line.size()), ' ').append(": [");
            text.append(line.starts_with("**") ? "" : names_of(callbacks, line)).append("]");
        }
        text += '\n';
        if (line.starts_with("Start"))
            indent += indentation;
    }
    return text;
}

}   // namespace drawpoint
