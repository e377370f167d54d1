#pragma once

#include <string>

namespace drawpoint {

class CallbackList;

/// The training loop as an indented text: its events in their order, each with the names of the callbacks that want it
/// in the order in which they run, as fastai's method of this name prints it.
[[nodiscard]] std::string show_training_loop(const CallbackList& callbacks);

}   // namespace drawpoint
