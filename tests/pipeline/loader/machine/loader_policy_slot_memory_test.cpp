#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cstdint>

#include "pipeline/loader/machine/bytes_in_virtual_time.hpp"

namespace drawpoint {
namespace {

using test::Driven;

BOOST_AUTO_TEST_SUITE(loader_policy_slot_memory)

BOOST_AUTO_TEST_CASE(memory_once_taken_is_used_again_and_nothing_is_trimmed_in_steady_state) {
    for (const std::size_t fitting : {2u, 3u, 7u}) {
        Driven driven{{.num_workers = 2, .prefetch_depth = 20, .batches_budget_bytes = 100 * fitting + 99},
                      [](std::uint64_t) { return 100; },
                      fitting};
        driven.policy.extend(500);
        while (driven.step()) {
        }
        BOOST_TEST(driven.peak == 100 * fitting);
        BOOST_TEST(driven.policy.expected_batches_bytes() == 100 * fitting);
        BOOST_TEST(driven.policy.most_batches_bytes() == 100 * fitting);
        BOOST_TEST(std::popcount(driven.touched) == static_cast<int>(fitting));
        BOOST_TEST(driven.trimmed == 0u);
    }
}

BOOST_AUTO_TEST_CASE(a_free_slot_with_much_memory_is_taken_and_the_smallest_other_ones_make_room) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 3, .batches_budget_bytes = 100, .batch_bytes_hint = 10}};
    policy.extend(10);
    for (const std::uint64_t bytes : {5u, 35u, 10u, 40u}) {
        const auto admission = policy.admit();
        BOOST_REQUIRE(admission.has_value());
        policy.complete(admission->slot, false);
        policy.holds(admission->slot, bytes);
        BOOST_REQUIRE(policy.hand_over().has_value());
    }
    for (const std::uint32_t slot : {0u, 1u, 2u, 3u})
        policy.release(slot);
    BOOST_TEST(policy.trims() == 0u);
    BOOST_TEST(policy.admit()->slot == 3u);
    BOOST_TEST(policy.trims() == 0u);
    BOOST_TEST(policy.admit()->slot == 1u);   // needs 5 more, 10 are left
    BOOST_TEST(policy.trims() == 0u);
    BOOST_TEST(!policy.admit().has_value());   // 40 + 40 + 40
    BOOST_TEST(policy.trims() == 0u);          // trimming would not help
    policy.complete(1, false);
    policy.holds(1, 43);
    BOOST_TEST(policy.trims() == 0b0001u);   // 98, and 3 more that the open batch may still take
    BOOST_TEST(policy.batches_bytes() == 93u);
    policy.complete(3, false);
    policy.holds(3, 60);
    BOOST_TEST(policy.trims() == 0b0100u);
    BOOST_TEST(policy.batches_bytes() == 103u);
}

BOOST_AUTO_TEST_CASE(a_slot_out_of_use_gives_its_memory_up_when_it_is_needed) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 2, .batches_budget_bytes = 30, .batch_bytes_hint = 10}};
    policy.extend(10);
    for (std::uint32_t slot = 0; slot < 3; ++slot) {
        BOOST_TEST(policy.admit()->slot == slot);
        policy.complete(slot, false);
        policy.holds(slot, 10);
        BOOST_TEST(policy.hand_over().has_value());
    }
    policy.retarget(2, 1);
    policy.release(2);
    policy.release(0);
    policy.holds(1, 15);
    BOOST_TEST(policy.trims() == 0b001u);   // 35 out of 30
    BOOST_TEST(policy.admit()->slot == 0u);
    BOOST_TEST(policy.trims() == 0b100u);   // 25 + 15
}

BOOST_AUTO_TEST_CASE(memory_left_to_its_holder_is_not_counted_any_more) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 5, .batches_budget_bytes = 20, .batch_bytes_hint = 10}};
    policy.extend(10);
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
        BOOST_TEST(policy.admit()->slot == slot);
        policy.complete(slot, false);
        policy.holds(slot, 10);
        BOOST_TEST(policy.hand_over().has_value());
    }
    BOOST_TEST(!policy.admit().has_value());
    policy.release(0);
    policy.holds(0, 0);
    BOOST_TEST(policy.batches_bytes() == 10u);
    BOOST_TEST(policy.admit().has_value());
    BOOST_TEST(!policy.admit().has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
