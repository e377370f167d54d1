#include <drawpoint/pipeline/memory_plan.hpp>

#include <cstdint>
#include <limits>
#include <random>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/batch_slots.hpp>

BOOST_AUTO_TEST_SUITE(memory_plan)

using namespace drawpoint;

namespace {

constexpr std::uint64_t MiB = std::uint64_t{1} << 20;

/// Batches of 64 photographs at 224 × 224.
MemoryNeeds photos(std::size_t depth, std::uint64_t budget = 0) {
    return {.sample_bytes = 3 * 224 * 224 * 4,
            .batch_size = 64,
            .num_workers = 2,
            .prefetch_depth = depth,
            .read_concurrency = 64,
            .encoded_bytes = 50'000,
            .dataset_size = 1360,
            .memory_budget = budget};
}

}   // namespace

BOOST_AUTO_TEST_CASE(without_a_budget_everything_is_as_asked_and_adds_up) {
    const MemoryPlan plan = plan_memory(photos(4));
    BOOST_TEST(plan.prefetch_depth == 4u);
    BOOST_TEST(plan.read_concurrency == 64u);
    SlotMemory* const slot = SlotMemory::allocate(64 * 3 * 224 * 224 * 4, 64);
    BOOST_TEST(plan.slot_bytes == slot->bytes() + 64 * 8);   // and the indices
    slot->release();
    BOOST_TEST(plan.slots_bytes == 5 * plan.slot_bytes);
    BOOST_TEST(plan.in_flight_bytes == 2 * 64 * 50'000u);
    BOOST_TEST(plan.workers_bytes == 4 * MiB);
    BOOST_TEST(plan.order_bytes == 8 * 1360u);
    BOOST_TEST(plan.loader_bytes == plan.slots_bytes + plan.in_flight_bytes + plan.workers_bytes + plan.order_bytes);
    BOOST_TEST(plan.missing_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(a_small_slot_is_as_large_as_its_memory) {
    for (const std::size_t samples : {1u, 7u, 64u, 1000u, 30'000u, 29'127u}) {
        SlotMemory* const slot = SlotMemory::allocate(samples * 64, samples);
        BOOST_TEST(plan_memory({.sample_bytes = 64, .batch_size = samples}).slot_bytes == slot->bytes() + 8 * samples);
        slot->release();
    }
}

BOOST_AUTO_TEST_CASE(the_depth_shrinks_to_what_the_budget_leaves_and_then_the_reads_do) {
    const MemoryPlan asked = plan_memory(photos(8));
    BOOST_TEST(plan_memory(photos(8, asked.loader_bytes)).prefetch_depth == 8u);
    BOOST_TEST(plan_memory(photos(8, asked.loader_bytes - 1)).prefetch_depth == 7u);
    const MemoryPlan smallest_depth = plan_memory(photos(1));
    const MemoryPlan tight = plan_memory(photos(8, smallest_depth.loader_bytes));
    BOOST_TEST((tight == smallest_depth));
    const MemoryPlan tighter = plan_memory(photos(8, smallest_depth.loader_bytes - 100'000));
    BOOST_TEST(tighter.prefetch_depth == 1u);
    BOOST_TEST(tighter.read_concurrency == 63u);
    BOOST_TEST(tighter.missing_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(a_budget_too_small_for_anything_gives_the_smallest_plan_and_says_what_is_missing) {
    const MemoryPlan plan = plan_memory(photos(8, 64 * MiB));
    BOOST_TEST(plan.prefetch_depth == 1u);
    BOOST_TEST(plan.read_concurrency == 2u);
    BOOST_TEST(plan.missing_bytes == plan.loader_bytes - 64 * MiB);
    BOOST_TEST(plan.missing_bytes > 0u);
}

BOOST_AUTO_TEST_CASE(a_plan_never_exceeds_a_budget_that_the_smallest_fits_and_never_what_is_asked) {
    std::mt19937_64 random{3};
    const auto up_to = [&](std::uint64_t bound) { return random() % (bound + 1); };
    for (int round = 0; round < 20'000; ++round) {
        MemoryNeeds needs{.sample_bytes = up_to(1 << 20),
                          .batch_size = 1 + up_to(256),
                          .num_workers = up_to(8),
                          .prefetch_depth = 1 + up_to(20),
                          .read_concurrency = up_to(128),
                          .encoded_bytes = up_to(200'000),
                          .cache_bytes = up_to(256 * MiB),
                          .dataset_size = up_to(1'000'000),
                          .memory_budget = 1 + up_to(1024 * MiB)};
        const MemoryPlan plan = plan_memory(needs);
        BOOST_REQUIRE((plan.prefetch_depth >= 1 && plan.prefetch_depth <= needs.prefetch_depth));
        BOOST_REQUIRE(plan.read_concurrency <= needs.read_concurrency);
        BOOST_REQUIRE((needs.read_concurrency == 0 || plan.read_concurrency >= 1));
        BOOST_REQUIRE(plan.loader_bytes == plan.slots_bytes + plan.in_flight_bytes + plan.workers_bytes +
                                               plan.order_bytes + plan.cache_bytes);
        if (plan.missing_bytes == 0)
            BOOST_REQUIRE(plan.loader_bytes <= needs.memory_budget);
        else
            BOOST_REQUIRE(
                (plan.prefetch_depth == 1 && plan.read_concurrency <= std::max<std::size_t>(needs.num_workers, 1)));
        if (plan.prefetch_depth < needs.prefetch_depth && plan.read_concurrency == needs.read_concurrency)
            BOOST_REQUIRE(plan.loader_bytes + plan.slot_bytes > needs.memory_budget);   // no deeper one fits
    }
}

BOOST_AUTO_TEST_CASE(sizes_beyond_all_memory_do_not_wrap_around) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    for (const std::uint64_t size : {most, most / 2, most / 1000}) {
        const MemoryPlan plan = plan_memory({.sample_bytes = size, .batch_size = 1 << 20, .memory_budget = 1024 * MiB});
        BOOST_TEST(plan.loader_bytes == most);
        BOOST_TEST(plan.prefetch_depth == 1u);
        BOOST_TEST(plan.missing_bytes == most - 1024 * MiB);
    }
}

BOOST_AUTO_TEST_SUITE_END()
