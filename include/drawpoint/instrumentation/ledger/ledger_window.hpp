#pragma once

#include <cstdint>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// The part [from_ns, to_ns) of a ledger (times of its clock), as a ledger of its own: a profiling cycle. Keeps the
/// steps, operators, samples and ends of data that lie wholly inside; the batches taken inside (those never taken:
/// admitted inside) with their failures; the allocations and stack samples inside. Passes are cut to the window. Of a
/// step that reaches beyond the window, the pieces inside become pieces of the pass, so that pieces still tile it.
/// Names, threads, frames, stacks, pipelines, settings, thinnings and facts are kept whole; of the host's rows, those
/// inside, one before and one after. O(rows log rows). Any thread. Throws std::invalid_argument if steps were folded
/// and the window begins before `Folded::until_ns`.
[[nodiscard]] Ledger window(const Ledger&, std::int64_t from_ns, std::int64_t to_ns);

}   // namespace drawpoint
