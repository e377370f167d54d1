#pragma once

#include <string>

namespace drawpoint {

class CallbackList;

/// The training loop as an indented text: its events in their order, each with the callbacks that want it in the order
/// in which they run, in the format of fastai's method of this name.
[[nodiscard]] std::string show_training_loop(const CallbackList& callbacks);

}   // namespace drawpoint
