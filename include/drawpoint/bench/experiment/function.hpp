#pragma once

#include <functional>
#include <memory>
#include <string>

#include <drawpoint/bench/experiment/contender.hpp>

namespace drawpoint::bench {

/// A contender that is a function of this process. It measures wall time and the CPU time of all of the process's
/// threads, which are compared, and page faults and context switches, for a call. Calling it costs about 2 ns.
/// `function` must keep its result from being optimised away, and is called by the thread that runs the experiment.
/// What it throws, take_turn() throws. cancel() takes effect after the turn.
///
/// All functions of a process share its heap and its memory layout, whose luck no number of rounds averages away: to
/// compare two builds of one function, make two programs and race them as commands.
[[nodiscard]] std::unique_ptr<Contender> make_function(std::string name, std::function<void()> function);

}   // namespace drawpoint::bench
