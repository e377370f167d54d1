#pragma once

#include <cstdint>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Of each sample's read, by position in `Ledger::samples`: from its begin until the loader's read before it had ended,
/// by the order of their ends, ns; 0 if it had ended already, and of samples without bytes. A read is that ahead of the
/// worker, else the first stage. O(n log n).
[[nodiscard]] std::vector<std::int64_t> reads_behind(const Ledger&, std::uint16_t pipeline);

}   // namespace drawpoint
