#pragma once

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint {

/// Fills in `stages`, `workers` and `queue`. Requires `run.wall_s`.
void add_loader(Summary&, const Ledger&);
/// Fills in what comes from facts and failures, and `reading`.
void add_facts(Summary&, const Ledger&);

}   // namespace drawpoint
