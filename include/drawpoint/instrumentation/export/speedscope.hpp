#pragma once

#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Writes a sorted ledger (`Ledger::sort`) as a speedscope file (https://www.speedscope.app): an evented profile for
/// the loop, each other thread with operators, each worker, each batch slot and each stream of a device, in nanoseconds
/// since the run's start. Slices nest. Of two that overlap without nesting, the one that begins later goes to a
/// separate profile "… (overlapping)". Folded rows (`Folded`) are missing. Invalid UTF-8 is replaced by U+FFFD. The
/// text is streamed. Memory grows by 4 bytes for each operator and by about 100 for each slice of the thread that has
/// most. A failing stream shows in its state. Any thread.
void write_speedscope(const Ledger&, std::ostream&);

}   // namespace drawpoint
