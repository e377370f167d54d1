#pragma once

#include <cstdint>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// The part of a sorted ledger between two times (absolute nanoseconds), as a ledger of its own: a profiling cycle.
/// Steps, operators, samples, batches and ends of data are kept when they lie wholly inside (batches by when they were taken);
/// allocations, stack samples and failures' batches by their moment. Passes are cut to the window, and what it holds of steps
/// that reach beyond it becomes their own pieces, so that the pieces still tile. Names, threads, stacks, pipelines, settings
/// and facts stay whole; of the host's rows, those inside with one before and one after. O(rows). Any thread. Throws std::invalid_argument where the window begins before `Folded::until_ns`.
[[nodiscard]] Ledger window(const Ledger&, std::int64_t from_ns, std::int64_t to_ns);

}   // namespace drawpoint
