#pragma once

#include <cstdint>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>

namespace drawpoint {

/// What a worker did for a while.
struct WorkerPart {
    enum class What : std::uint8_t { stage, collate, sampler, overhead, idle, idle_no_slot, unknown };
    What what{};
    std::uint8_t stage = 0;   ///< for `What::stage`, like `pipeline`
    std::uint16_t pipeline = 0;
    std::int64_t begin_ns = 0, ns = 0;
    std::int64_t run_queue_ns = 0;   ///< of `ns`: waiting for a core
};

/// A worker's time: its parts in order, without gaps.
struct WorkerTimeline {
    std::uint16_t worker = 0;
    std::uint16_t pipeline = 0;
    std::vector<WorkerPart> parts;
};

/// All workers that made a sample, collated a batch or computed an order, by number, each over the whole range. The
/// loop, which does the work of an inline loader, is not among them. O(rows log rows).
[[nodiscard]] std::vector<WorkerTimeline> worker_timelines(const Ledger&, const LoaderRows&, TimeRange);

}   // namespace drawpoint
