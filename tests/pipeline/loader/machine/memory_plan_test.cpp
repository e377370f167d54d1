#include <drawpoint/pipeline/loader/machine/memory_plan.hpp>

#include <cstdint>
#include <limits>
#include <random>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/loader/core/batch_slots.hpp>
#include <drawpoint/pipeline/loader/core/sample_buffer.hpp>

BOOST_AUTO_TEST_SUITE(memory_plan)

using namespace drawpoint;

namespace {

constexpr std::uint64_t MiB = std::uint64_t{1} << 20;

/// Batches of 64 photographs of 224 × 224.
MemoryNeeds photos(std::size_t depth, std::uint64_t budget = 0) {
    return {.sample_bytes = 3 * 224 * 224 * 4,
            .batch_size = 64,
            .num_workers = 2,
            .prefetch_depth = depth,
            .read_concurrency = 64,
            .encoded_bytes = 50'000,
            .order_bytes = 8 * 1360,
            .dataset_size = 1360,
            .memory_budget = budget};
}

}   // namespace

BOOST_AUTO_TEST_CASE(without_a_budget_everything_is_as_asked_and_adds_up) {
    const MemoryPlan plan = plan_memory(photos(4));
    BOOST_TEST(plan.prefetch_depth == 4u);
    BOOST_TEST(plan.read_concurrency == 64u);
    SlotMemory* const slot = SlotMemory::allocate(64 * 3 * 224 * 224 * 4, 64);
    BOOST_TEST(plan.slot_bytes == slot->bytes() + 64 * 8);   // with the indices
    slot->release();
    BOOST_TEST(plan.slots_bytes == 5 * plan.slot_bytes);
    BOOST_TEST(plan.in_flight_bytes == 2 * 64 * 50'000u);
    BOOST_TEST(plan.workers_bytes == 4 * MiB);
    BOOST_TEST(plan.order_bytes == 8 * 1360u);
    BOOST_TEST(plan.planned_bytes == plan.slots_bytes + plan.in_flight_bytes + plan.workers_bytes + plan.order_bytes);
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
    BOOST_TEST(plan_memory(photos(8, asked.planned_bytes)).prefetch_depth == 8u);
    BOOST_TEST(plan_memory(photos(8, asked.planned_bytes - 1)).prefetch_depth == 7u);
    MemoryNeeds slow = photos(1);
    slow.read_concurrency = 40;   // within a sixteenth of the budget
    const MemoryPlan smallest_depth = plan_memory(slow);
    slow.prefetch_depth = 8;
    slow.memory_budget = smallest_depth.planned_bytes;
    const MemoryPlan tight = plan_memory(slow);
    BOOST_TEST((tight == smallest_depth));
    slow.memory_budget -= 100'000;
    const MemoryPlan tighter = plan_memory(slow);
    BOOST_TEST(tighter.prefetch_depth == 1u);
    BOOST_TEST(tighter.read_concurrency == 39u);
    BOOST_TEST(tighter.missing_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(what_is_read_ahead_takes_no_more_than_a_sixteenth_of_a_budget_but_as_many_reads_as_workers) {
    MemoryNeeds needs = photos(2, 160 * MiB);
    BOOST_TEST(plan_memory(needs).in_flight_bytes == 64 * 2 * 50'000u);
    needs.encoded_bytes = 500'000;
    const MemoryPlan plan = plan_memory(needs);
    BOOST_TEST(plan.read_concurrency == 10u);
    BOOST_TEST(plan.in_flight_bytes <= 10 * MiB);
    BOOST_TEST(plan.in_flight_bytes > 10 * MiB - 2 * 500'000);
    BOOST_TEST(plan.prefetch_depth == 2u);
    needs.encoded_bytes = 4 * MiB;
    BOOST_TEST(plan_memory(needs).read_concurrency == 2u);
    needs.memory_budget = 0;
    BOOST_TEST(plan_memory(needs).read_concurrency == 64u);
}

BOOST_AUTO_TEST_CASE(a_slot_has_room_for_no_more_samples_than_there_are) {
    MemoryNeeds needs{.sample_bytes = 1000, .batch_size = 1'000'000, .dataset_size = 60};
    const MemoryPlan plan = plan_memory(needs);
    BOOST_TEST(plan.slot_samples == 60u);
    needs.batch_size = 60;
    BOOST_TEST((plan_memory(needs) == plan));
    needs.dataset_size = 61;
    BOOST_TEST(plan_memory(needs).slot_samples == 60u);
    needs.dataset_size = 0;   // unknown
    BOOST_TEST(plan_memory(needs).slot_samples == 60u);
}

BOOST_AUTO_TEST_CASE(collated_batches_keep_their_depth_and_share_what_the_rest_leaves) {
    MemoryNeeds needs{.collates = true,
                      .batch_size = 32,
                      .num_workers = 2,
                      .prefetch_depth = 19,
                      .read_concurrency = 8,
                      .encoded_bytes = 100'000,
                      .cache_bytes = 10 * MiB,
                      .order_bytes = 8'000,
                      .dataset_size = 1000};
    BOOST_TEST(plan_memory(needs).batches_budget_bytes == std::numeric_limits<std::uint64_t>::max());
    needs.memory_budget = 64 * MiB;
    const MemoryPlan unknown = plan_memory(needs);
    BOOST_TEST(unknown.prefetch_depth == 19u);
    BOOST_TEST(unknown.slot_bytes == 0u);
    BOOST_TEST(unknown.slots_bytes == 0u);
    BOOST_TEST(unknown.planned_bytes == 14 * MiB + 8'000 + 2 * 8 * 100'000);
    BOOST_TEST(unknown.batches_budget_bytes == 64 * MiB - unknown.planned_bytes);

    needs.sample_bytes = 100'000;   // twice, in the sample and in the batch, with target and index
    const MemoryPlan known = plan_memory(needs);
    BOOST_TEST(known.prefetch_depth == 19u);
    BOOST_TEST(known.slot_bytes == 32 * (2 * 100'000 + sizeof(SampleBuffer)) + 256 + 256);
    // 20 batches fit the budget; only those that two workers are making need sample buffers.
    const std::uint64_t samples = 32 * (100'000 + sizeof(SampleBuffer));
    BOOST_TEST(known.sample_sets == 2u);
    BOOST_TEST(known.slots_bytes == 13 * (known.slot_bytes - samples) + 2 * samples);
    BOOST_TEST(known.batches_budget_bytes == unknown.batches_budget_bytes);
    BOOST_TEST(known.slots_bytes <= known.batches_budget_bytes);
    BOOST_TEST(known.slots_bytes + known.slot_bytes - samples > known.batches_budget_bytes);
    needs.memory_budget = 0;
    needs.num_workers = 30;
    BOOST_TEST(plan_memory(needs).slots_bytes == 20 * known.slot_bytes);   // every batch may be under way
    needs.num_workers = 0;
    BOOST_TEST(plan_memory(needs).slots_bytes == 20 * (known.slot_bytes - samples) + samples);
    needs.num_workers = 2;

    needs.memory_budget = 64 * MiB;
    needs.sample_bytes = 64 * MiB;   // so only one is made at a time
    BOOST_TEST(plan_memory(needs).missing_bytes == 0u);
    needs.memory_budget = 13 * MiB;
    BOOST_TEST(plan_memory(needs).missing_bytes > 0u);
    BOOST_TEST(plan_memory(needs).batches_budget_bytes == 1u);
    needs.collates = false;
    BOOST_TEST(plan_memory(needs).batches_budget_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(a_budget_too_small_for_anything_gives_the_smallest_plan_and_says_what_is_missing) {
    const MemoryPlan plan = plan_memory(photos(8, 64 * MiB));
    BOOST_TEST(plan.prefetch_depth == 1u);
    BOOST_TEST(plan.read_concurrency == 2u);
    BOOST_TEST(plan.missing_bytes == plan.planned_bytes - 64 * MiB);
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
                          .order_bytes = up_to(16'000'000),
                          .dataset_size = up_to(1'000'000),
                          .memory_budget = 1 + up_to(1024 * MiB)};
        const MemoryPlan plan = plan_memory(needs);
        BOOST_REQUIRE((plan.prefetch_depth >= 1 && plan.prefetch_depth <= needs.prefetch_depth));
        BOOST_REQUIRE(plan.read_concurrency <= needs.read_concurrency);
        BOOST_REQUIRE((needs.read_concurrency == 0 || plan.read_concurrency >= 1));
        BOOST_REQUIRE(plan.planned_bytes == plan.slots_bytes + plan.in_flight_bytes + plan.workers_bytes +
                                                plan.order_bytes + plan.cache_bytes);
        if (plan.missing_bytes == 0)
            BOOST_REQUIRE(plan.planned_bytes <= needs.memory_budget);
        else
            BOOST_REQUIRE(
                (plan.prefetch_depth == 1 && plan.read_concurrency <= std::max<std::size_t>(needs.num_workers, 1)));
        if (plan.prefetch_depth <
            needs.prefetch_depth)   // one more slot does not fit, unless the depth is 1 and the reads shrank afterwards
            BOOST_REQUIRE((plan.planned_bytes + plan.slot_bytes > needs.memory_budget || plan.prefetch_depth == 1));
    }
}

BOOST_AUTO_TEST_CASE(sizes_beyond_all_memory_do_not_wrap_around) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    for (const std::uint64_t size : {most, most / 2, most / 1000}) {
        const MemoryPlan plan = plan_memory({.sample_bytes = size, .batch_size = 1 << 20, .memory_budget = 1024 * MiB});
        BOOST_TEST(plan.planned_bytes == most);
        BOOST_TEST(plan.prefetch_depth == 1u);
        BOOST_TEST(plan.missing_bytes == most - 1024 * MiB);
    }
}

BOOST_AUTO_TEST_SUITE_END()
