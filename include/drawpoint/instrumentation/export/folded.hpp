#pragma once

#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Writes collapsed stacks, "frame;frame;frame count" per line, sorted, for flamegraph.pl, inferno and speedscope: from
/// stack samples "thread;action;outermost;…;innermost samples", without any the loop's pieces,
/// "fit;epoch;train;step;draw;starved µs". A `;` in a name becomes `,`, control characters become blanks. Writes
/// nothing if the ledger has neither. O(rows log rows).
void write_folded(const Ledger&, std::ostream&);

}   // namespace drawpoint
