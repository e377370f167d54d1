#pragma once

#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Writes the ledger as a speedscope file (https://www.speedscope.app): an evented profile for the loop, each worker,
/// each batch slot and each thread with operators, in nanoseconds since the run's start. Streaming; memory grows with
/// the longest thread and the number of distinct names. A failing stream shows in its state. Any thread.
void write_speedscope(const Ledger&, std::ostream&);

}   // namespace drawpoint
