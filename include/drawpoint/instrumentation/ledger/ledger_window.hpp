#pragma once

#include <cstdint>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// The part of a sorted ledger between two times (absolute nanoseconds), as a ledger of its own: a profiling cycle.
/// Keeps the steps, operators, samples and ends of data that lie wholly inside; the batches taken inside (those never
/// taken: admitted inside) with their failures; the allocations and stack samples inside. Passes are cut to the window.
/// Of a step that reaches beyond the window, the pieces inside become pieces of the pass, so that pieces still tile it.
/// Names, threads, stacks, pipelines, settings and facts are kept whole; of the host's rows, those inside, one before
/// and one after. O(rows). Any thread. Throws std::invalid_argument if the window begins before `Folded::until_ns`.
[[nodiscard]] Ledger window(const Ledger&, std::int64_t from_ns, std::int64_t to_ns);

}   // namespace drawpoint
