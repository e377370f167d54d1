#pragma once

#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Writes collapsed stacks for flamegraph.pl, inferno and speedscope: lines of frames joined by `;`, a blank and a
/// count, sorted. If the ledger has stack samples, the frames are "thread;action;outermost;…;innermost" and the count
/// is that of samples. Otherwise they are the loop's pieces, "fit;epoch;train;step;draw;starved", and the count is
/// microseconds, without those that round to 0. A `;` in a name becomes `,`, control characters become blanks. Writes
/// nothing if the ledger has neither. Needs a sorted ledger (`Ledger::sort`); folded steps (`Folded`) are missing.
/// O(rows log rows). A failing stream shows in its state. Any thread.
void write_folded(const Ledger&, std::ostream&);

}   // namespace drawpoint
