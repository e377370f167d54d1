#include <drawpoint/instrumentation/event.hpp>

namespace drawpoint {
namespace {

// clang-format off
constexpr std::array<std::string_view, span_count> span_names{
    "after_create",   "before_fit",            "before_epoch",    "before_train",       "before_draw",
    "before_batch",   "after_pred",            "after_loss",      "before_backward",    "after_cancel_backward",
    "after_backward", "before_step",           "after_cancel_step", "after_step",       "after_cancel_batch",
    "after_batch",    "after_cancel_train",    "after_train",     "before_validate",    "after_cancel_validate",
    "after_validate", "after_cancel_epoch",    "after_epoch",     "after_cancel_fit",   "after_fit",
    "starved",        "handoff",               "transfer",        "forward",            "loss",
    "backward",       "opt_step",              "zero_grad",       "callbacks",          "other",
    "between",        "device"};
// clang-format on

constexpr std::array<std::string_view, action_count> action_names{
    "fit",  "epoch",    "train",    "valid",     "step",      "draw",  "batch",   "forward",    "predict",
    "loss", "backward", "opt_step", "zero_grad", "callbacks", "other", "between", "end_of_data"};

}   // namespace

std::string_view name_of(Event event) noexcept { return span_names[static_cast<std::size_t>(event)]; }
std::string_view name_of(Span span) noexcept { return span_names[static_cast<std::size_t>(span)]; }
std::string_view name_of(Action action) noexcept { return action_names[static_cast<std::size_t>(action)]; }
std::string_view name_of(Phase phase) noexcept { return phase == Phase::train ? "train" : "valid"; }

std::string_view name_of(PassKind kind) noexcept {
    constexpr std::array<std::string_view, 4> names{"fit", "epoch", "train", "valid"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(StepStatus status) noexcept {
    constexpr std::array<std::string_view, 3> names{"complete", "cancelled", "failed"};
    return names[static_cast<std::size_t>(status)];
}

}   // namespace drawpoint
