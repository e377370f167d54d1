#pragma once

#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Writes all rows of the ledger, in their order, as `drawpoint.ledger/1` (docs/formats.md); of `Ledger::folded` only
/// the counts and sums over all steps. Every column appears by its name; a row is an object whose keys are the row's
/// fields, with their units. Timestamps are those of the ledger, not relative to its start. A reference to another row
/// (a name, thread, stack or pipeline) is its index in that column; side columns (spans, stages) are nested in the rows
/// they belong to. null: not measured, did not happen, or not representable in JSON. One row per line. Streaming, in
/// constant memory. A failing stream shows in its state. Any thread.
void write_json_ledger(const Ledger&, std::ostream&);

}   // namespace drawpoint
