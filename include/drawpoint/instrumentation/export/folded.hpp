#pragma once

#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Writes collapsed stacks, "frame;frame;frame count" a line, sorted: flamegraph.pl, inferno and speedscope read it.
/// With stack samples "thread;action;outermost;…;innermost samples"; else the loop's pieces,
/// "fit;epoch;train;step;draw;starved µs". A `;` in a name becomes `,`, control characters blanks. Nothing is written
/// when there is neither. O(rows log rows).
void write_folded(const Ledger&, std::ostream&);

}   // namespace drawpoint
