#pragma once

#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Writes the whole ledger as `drawpoint.ledger/1`: every column by its name, a row an object whose keys are the row's
/// fields, with their units; stamps are absolute, on the recording's clock. Where a row names another (a name, thread,
/// stack or pipeline), it holds its position in that column; side columns (spans, stages) stand inside the rows they
/// belong to. Null: not measured, did not happen, or a number JSON has no word for. A row a line. Streaming, in
/// constant memory. A failing stream shows in its state. Any thread.
void write_json_ledger(const Ledger&, std::ostream&);

}   // namespace drawpoint
