#include <drawpoint/pipeline/memory_plan.hpp>

#include <algorithm>
#include <limits>

#include <drawpoint/pipeline/read_policy.hpp>

#include "pipeline/slot_bytes.hpp"

namespace drawpoint {

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

/// A number of bytes that stays at its largest value once it is there.
struct Bytes {
    std::uint64_t count = 0;
    friend constexpr Bytes operator+(Bytes a, Bytes b) noexcept {
        return {a.count > most - b.count ? most : a.count + b.count};
    }
    friend constexpr Bytes operator*(Bytes a, std::uint64_t times) noexcept {
        return {times != 0 && a.count > most / times ? most : a.count * times};
    }
};

}   // namespace

MemoryPlan plan_memory(const MemoryNeeds& needs) noexcept {
    const auto slot_bytes = slot_memory_bytes((Bytes{needs.sample_bytes} * needs.batch_size).count, needs.batch_size);
    const Bytes slot = Bytes{slot_bytes} + Bytes{sizeof(std::uint64_t)} * needs.batch_size;   // its indices, too
    const Bytes held = Bytes{needs.encoded_bytes} * ReadPolicy::most_held(1);
    const Bytes fixed = Bytes{needs.worker_bytes} * needs.num_workers +
                        Bytes{sizeof(std::uint64_t)} * needs.dataset_size + Bytes{needs.cache_bytes};
    const std::uint64_t budget = needs.memory_budget == 0 ? most : needs.memory_budget;
    const auto total = [&](std::size_t depth, std::size_t reads) {
        return (fixed + slot * (std::uint64_t{depth} + 1) + held * reads).count;
    };
    /// The largest of lowest … asked that fits, or the lowest.
    const auto largest = [&](std::size_t lowest, std::size_t asked, auto total_of) {
        while (lowest < asked) {
            const std::size_t middle = asked - (asked - lowest) / 2;
            if (total_of(middle) <= budget)
                lowest = middle;
            else
                asked = middle - 1;
        }
        return lowest;
    };

    MemoryPlan plan;
    const std::size_t asked_depth = std::max<std::size_t>(needs.prefetch_depth, 1);
    plan.prefetch_depth =
        largest(1, asked_depth, [&](std::size_t depth) { return total(depth, needs.read_concurrency); });
    const std::size_t fewest_reads = std::min(needs.read_concurrency, std::max<std::size_t>(needs.num_workers, 1));
    plan.read_concurrency = largest(fewest_reads, needs.read_concurrency,
                                    [&](std::size_t reads) { return total(plan.prefetch_depth, reads); });
    plan.slot_bytes = slot.count;
    plan.slots_bytes = (slot * (std::uint64_t{plan.prefetch_depth} + 1)).count;
    plan.in_flight_bytes = (held * plan.read_concurrency).count;
    plan.workers_bytes = (Bytes{needs.worker_bytes} * needs.num_workers).count;
    plan.order_bytes = (Bytes{sizeof(std::uint64_t)} * needs.dataset_size).count;
    plan.cache_bytes = needs.cache_bytes;
    plan.loader_bytes = total(plan.prefetch_depth, plan.read_concurrency);
    plan.missing_bytes = plan.loader_bytes > budget ? plan.loader_bytes - budget : 0;
    return plan;
}

}   // namespace drawpoint
