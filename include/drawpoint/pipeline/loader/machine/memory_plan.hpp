#pragma once

#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// What a loader's memory depends on. Sizes are in bytes; estimates may be 0 where there is nothing to hold.
struct MemoryNeeds {
    /// Size of a finished sample; where shapes vary, of the largest one after padding, or 0 if unknown.
    std::uint64_t sample_bytes = 0;
    /// Samples are made in buffers of their own and then copied into the batch's arrays: twice the memory.
    bool collates = false;
    std::size_t batch_size = 1, num_workers = 1;
    std::size_t prefetch_depth = 2;                        ///< as asked for, ≥ 1
    std::size_t read_concurrency = 0;                      ///< as asked for; 0: the workers read for themselves
    std::uint64_t encoded_bytes = 0;                       ///< of one sample's file contents; 0: nothing is read ahead
    std::uint64_t worker_bytes = std::uint64_t{2} << 20;   ///< a worker's stack and scratch, with its decoder
    std::uint64_t cache_bytes = 0;                         ///< budget of a cache in memory
    std::uint64_t order_bytes = 0;                         ///< orders of samples that the loader keeps
    std::uint64_t dataset_size = 0;                        ///< samples in a pass; 0: unknown
    std::uint64_t memory_budget = 0;                       ///< for slots, reads, scratch, order and cache; 0: none
};

/// How a loader's memory is divided.
struct MemoryPlan {
    std::size_t prefetch_depth = 1;   ///< to be used, ≥ 1: as asked for, or what the budget allows
    /// To be used: as asked for, or what fits a sixteenth of the budget and then what the rest leaves. Not below
    /// num_workers, unless fewer were asked for.
    std::size_t read_concurrency = 0;
    std::size_t slot_samples = 1;   ///< samples in a slot: batch_size, or the whole data set if that is smaller
    std::uint64_t slot_bytes = 0;   ///< memory of one batch, as allocated; 0: unknown before the first batch
    /// Where samples are collated: batches in the making, whose samples lie in memory besides the arrays; one for each
    /// worker. Elsewhere 0.
    std::size_t sample_sets = 0;
    std::uint64_t slots_bytes = 0;   ///< all slots: prefetch_depth + 1, or as many as fit
    /// Where samples are collated, the most that all slots together may hold: batches are admitted by their bytes and
    /// the depth stays as asked for. 2^64 - 1 without a budget; 0 where samples are not collated.
    std::uint64_t batches_budget_bytes = 0;
    /// Samples read ahead and not yet taken. Reads in flight when this is reached may exceed it.
    std::uint64_t in_flight_bytes = 0;
    std::uint64_t workers_bytes = 0, order_bytes = 0, cache_bytes = 0;
    std::uint64_t planned_bytes = 0;   ///< the sum of slots, reads, workers, order and cache: compared with the budget
    std::uint64_t missing_bytes = 0;   ///< by how much even the smallest plan exceeds the budget; 0: it fits
    bool operator==(const MemoryPlan&) const = default;
};

/// The largest plan within the budget and within what is asked for. Pure; O(log(depth) + log(reads)); never throws.
/// Sums beyond 2^64 - 1 bytes count as 2^64 - 1.
[[nodiscard]] MemoryPlan plan_memory(const MemoryNeeds&) noexcept;

}   // namespace drawpoint
