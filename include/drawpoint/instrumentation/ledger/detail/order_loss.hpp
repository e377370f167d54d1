#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// What the order of batches costs: the time during which the loop had no batch while a complete one of the same pass
/// waited behind an older one. 0 if batches are handed over as they finish.
class OrderLoss {
public:
    /// O(batches · log).
    explicit OrderLoss(const Ledger&);

    /// The part of the step's `starved` that was lost to order. O(log batches + waits inside).
    [[nodiscard]] std::int64_t of(const Ledger&, const StepRow&) const noexcept;

    /// Until when this batch of `Ledger::batches` was complete and waited for an older one; `no_stamp`: it did not.
    [[nodiscard]] std::int64_t freed_ns(std::size_t batch) const noexcept { return freed_ns_[batch]; }

private:
    using Pass = std::pair<std::uint16_t, std::uint32_t>;   // pipeline, epoch
    struct Interval {
        std::int64_t from_ns, to_ns;
    };
    struct Draw {
        std::int64_t taken_ns;
        Pass pass;
    };
    std::map<Pass, std::vector<Interval>> waits_;   // ascending, disjoint
    std::vector<Draw> draws_;                       // by time
    std::vector<std::int64_t> freed_ns_;            // by batch
};

}   // namespace drawpoint
