#pragma once

#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// What a loader's memory depends on. Sizes in bytes; estimates may be 0 where there is nothing to hold.
struct MemoryNeeds {
    std::uint64_t sample_bytes =
        0;   ///< of a finished sample; of varying shape: of the largest, padded, or 0 if unknown
    bool collates =
        false;   ///< samples in memory of their own while a batch is made, then arrays made of them: as much again
    std::size_t batch_size = 1, num_workers = 1;
    std::size_t prefetch_depth = 2;                        ///< asked for, ≥ 1
    std::size_t read_concurrency = 0;                      ///< asked for; 0: the workers read for themselves
    std::uint64_t encoded_bytes = 0;                       ///< of what a sample is read into; 0: nothing is read ahead
    std::uint64_t worker_bytes = std::uint64_t{2} << 20;   ///< stack and scratch of a worker, a decoder's included
    std::uint64_t cache_bytes = 0;                         ///< budget of a cache in memory
    std::uint64_t dataset_size = 0;                        ///< samples of a pass, for its order; 0: unknown
    std::uint64_t memory_budget = 0;                       ///< of slots, samples in flight, scratch and cache; 0: none
};

/// Where it goes.
struct MemoryPlan {
    std::size_t prefetch_depth = 1;   ///< to be used: as asked, or what the budget leaves, at least 1
    std::size_t read_concurrency =
        0;   ///< likewise: what a sixteenth of the budget holds, then what is left of all; ≥ num_workers
    std::size_t slot_samples = 1;   ///< a slot's: batch_size, or all of a data set that is smaller
    std::uint64_t slot_bytes = 0;   ///< of one batch's memory as the loader takes it; 0: not known before the first
    /// Where samples are collated: batches whose samples are in memory beside the arrays, those in the making; each
    /// worker is at one. 0 elsewhere.
    std::size_t sample_sets = 0;
    std::uint64_t slots_bytes =
        0;   ///< of those ahead and the one the loop holds: prefetch_depth + 1, or as many as fit
    /// Where samples are collated, the most that all slots together may hold: batches are admitted by their bytes and
    /// the depth stays as asked. 2^64 - 1 without a budget; 0 where samples are not collated.
    std::uint64_t batches_budget_bytes = 0;
    std::uint64_t in_flight_bytes =
        0;   ///< read ahead and not yet taken; reads in flight when it is reached come on top
    std::uint64_t workers_bytes = 0, order_bytes = 0, cache_bytes = 0;
    std::uint64_t planned_bytes = 0;   ///< all of these: what the budget is compared with
    std::uint64_t missing_bytes = 0;   ///< by which even the smallest plan exceeds the budget; 0: it fits
    bool operator==(const MemoryPlan&) const = default;
};

/// The largest plan that the budget allows, and nothing larger than what is asked for. Pure, O(1), never throws: sizes
/// beyond 2^64 - 1 count as that.
[[nodiscard]] MemoryPlan plan_memory(const MemoryNeeds&) noexcept;

}   // namespace drawpoint
