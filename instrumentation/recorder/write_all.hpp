#pragma once

#include <cstdint>

#include "instrumentation/ledger/ledger_builder.hpp"
#include "instrumentation/trace/trace_writer.hpp"

namespace drawpoint {

/// Writes all that came so far into a new file, so that reading it and all that is written to it afterwards gives the
/// builder's ledger. `now_ns`: the time of what has no time of its own. O(rows log rows).
void write_all(const LedgerBuilder&, TraceWriter&, std::int64_t now_ns);

}   // namespace drawpoint
