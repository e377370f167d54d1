#include <drawpoint/pipeline/loader/machine/memory_plan.hpp>

#include <algorithm>
#include <limits>

#include <drawpoint/pipeline/loader/machine/detail/read_policy.hpp>

#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>

namespace drawpoint {

namespace {

constexpr std::uint64_t share_of_reads = 16;   // reads get 1/16 of the budget at most
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

/// A number of bytes with saturating arithmetic.
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
    const std::uint64_t budget = needs.memory_budget == 0 ? most : needs.memory_budget;
    MemoryPlan plan;
    plan.slot_samples =
        needs.dataset_size == 0 ? needs.batch_size : std::min<std::uint64_t>(needs.batch_size, needs.dataset_size);
    const Bytes samples = Bytes{needs.sample_bytes} * plan.slot_samples;
    const bool known = needs.sample_bytes != 0 || !needs.collates;
    Bytes slot{slot_memory_bytes(needs.collates ? 0 : samples.count, plan.slot_samples)};
    slot = slot + Bytes{sizeof(std::uint64_t)} * plan.slot_samples;   // its indices
    Bytes making{};                                                   // more, for each batch in the making
    if (needs.collates) {
        slot = known ? slot + samples : Bytes{};
        making = known ? samples + Bytes{sample_buffer_bytes} * plan.slot_samples : Bytes{};
        plan.sample_sets = std::max<std::size_t>(needs.num_workers, 1);
    }
    const Bytes held = Bytes{needs.encoded_bytes} * ReadPolicy::most_held(1);
    const Bytes fixed =
        Bytes{needs.worker_bytes} * needs.num_workers + Bytes{needs.order_bytes} + Bytes{needs.cache_bytes};
    const auto slots = [&](std::size_t depth) {
        return slot * (std::uint64_t{depth} + 1) + making * std::min<std::uint64_t>(plan.sample_sets, depth + 1);
    };
    const auto total = [&](std::size_t depth, std::size_t reads) {
        return (fixed + slots(depth) + held * reads).count;
    };
    /// The largest number in lowest … asked whose total is within the limit, or `lowest`.
    const auto largest = [](std::size_t lowest, std::size_t asked, std::uint64_t limit, auto total_of) {
        while (lowest < asked) {
            const std::size_t middle = asked - (asked - lowest) / 2;
            if (total_of(middle) <= limit)
                lowest = middle;
            else
                asked = middle - 1;
        }
        return lowest;
    };

    const std::size_t asked_depth = std::max<std::size_t>(needs.prefetch_depth, 1);
    const std::size_t fewest_reads = std::min(needs.read_concurrency, std::max<std::size_t>(needs.num_workers, 1));
    // Only the run shows whether anything is read ahead: the plan must be about right in both cases.
    const std::size_t reads = largest(fewest_reads, needs.read_concurrency, budget / share_of_reads,
                                      [&](std::size_t count) { return (held * count).count; });
    const std::size_t fitting = largest(1, asked_depth, budget, [&](std::size_t depth) { return total(depth, reads); });
    plan.read_concurrency =
        largest(fewest_reads, reads, budget, [&](std::size_t count) { return total(fitting, count); });
    plan.prefetch_depth = needs.collates ? asked_depth : fitting;
    plan.slot_bytes = (slot + making).count;
    plan.slots_bytes = slots(fitting).count;
    plan.sample_sets = std::min(plan.sample_sets, plan.prefetch_depth + 1);
    plan.in_flight_bytes = (held * plan.read_concurrency).count;
    plan.workers_bytes = (Bytes{needs.worker_bytes} * needs.num_workers).count;
    plan.order_bytes = needs.order_bytes;
    plan.cache_bytes = needs.cache_bytes;
    plan.planned_bytes = total(fitting, plan.read_concurrency);
    // Batches admitted by their bytes need no room in the plan: without any, they are made one at a time.
    const std::uint64_t needed = needs.collates ? (fixed + held * plan.read_concurrency).count : plan.planned_bytes;
    plan.missing_bytes = needed > budget ? needed - budget : 0;
    if (needs.collates)
        plan.batches_budget_bytes = needs.memory_budget == 0 ? most : budget > needed ? budget - needed : 1;
    return plan;
}

}   // namespace drawpoint
