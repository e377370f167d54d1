#pragma once

#include <cstddef>
#include <functional>

#include <drawpoint/bench/suite/suite.hpp>

#include "bench/experiment/turn_json.hpp"

namespace drawpoint::bench {

/// A turn of a row in this process: makes its task, warms up, and runs it as often as `next` says, until that is 0: it
/// is called after warming up and after each number of runs, in which time nothing is measured. Throws what the task
/// throws, and std::runtime_error if there was no run.
[[nodiscard]] RowTurn take_turn(const Suite::Row&, const std::function<std::size_t()>& next, bool with_digest);

}   // namespace drawpoint::bench
