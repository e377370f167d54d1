#pragma once

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint {

/// What a summary says of the loader: its stages, its workers, how many batches lay ready. After `run.wall_s`.
void add_loader(Summary&, const Ledger&);
/// What a summary takes from facts and failures, and what it says of reads ahead.
void add_facts(Summary&, const Ledger&);

}   // namespace drawpoint
