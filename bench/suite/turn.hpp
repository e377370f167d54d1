#pragma once

#include <cstddef>

#include <drawpoint/bench/suite/suite.hpp>

#include "bench/experiment/turn_json.hpp"

namespace drawpoint::bench {

/// A turn of a row in this process: makes its task, warms up, and runs it so many times. Throws what the task throws.
[[nodiscard]] RowTurn take_turn(const Suite::Row&, std::size_t runs, bool with_digest);

}   // namespace drawpoint::bench
