#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "pipeline/loader/machine/bytes_in_virtual_time.hpp"

namespace drawpoint {
namespace {

using test::Driven;

constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();

BOOST_AUTO_TEST_SUITE(loader_policy_byte_admission)

BOOST_AUTO_TEST_CASE(batches_are_opened_before_those_open_are_claimed_only_while_sizes_are_calm_and_room_is_ample) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        constexpr std::uint64_t budget = 100'000;
        Driven driven{{.num_workers = 1, .prefetch_depth = 55, .batches_budget_bytes = budget},
                      [](std::uint64_t batch) { return 100 + batch * 100; },   // each is larger than all before
                      seed};
        driven.open_at_once = 56;
        driven.claims_late = true;
        driven.policy.extend(300);
        while (driven.step())
            BOOST_REQUIRE_LE(driven.total(), std::max(budget, driven.bytes_out()) + driven.largest);
        BOOST_REQUIRE_EQUAL(driven.drawn_count, 300u);
    }
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 3, .batches_budget_bytes = 80}};
    policy.extend(100);
    for (int i = 0; i < 9; ++i) {   // 2 × 4 after the first
        const auto admission = policy.admit(0, 1);
        BOOST_REQUIRE(admission.has_value());
        BOOST_TEST(!policy.admit(0, 1).has_value());
        policy.complete(admission->slot, false);
        policy.holds(admission->slot, 10);
        BOOST_REQUIRE(policy.hand_over().has_value());
        policy.release(admission->slot);
    }
    BOOST_TEST(policy.admit(0, 1).has_value());
    BOOST_TEST(policy.admit(0, 1).has_value());    // 20 held, and 60 for two batches that are three times larger
    BOOST_TEST(!policy.admit(0, 1).has_value());   // 30 held, and 90
    BOOST_TEST(!policy.admit(0, 2).has_value());
    BOOST_TEST(policy.admit(0, 0).has_value());
}

BOOST_AUTO_TEST_CASE(however_calm_sizes_were_no_more_than_two_batches_are_open_before_they_are_claimed) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 9, .batches_budget_bytes = 1000, .batch_bytes_hint = 1}};
    policy.extend(100);
    BOOST_TEST(policy.admit(0, 0).has_value());
    BOOST_TEST(policy.admit(0, 1).has_value());
    BOOST_TEST(!policy.admit(0, 2).has_value());
    BOOST_TEST(policy.admit(0, 1).has_value());
    policy.holds(0, 500);   // still open: the others may become as large
    BOOST_TEST(!policy.admit(0, 0).has_value());
    BOOST_TEST(policy.largest_batch_bytes() == 500u);
}

BOOST_AUTO_TEST_CASE(under_a_budget_samples_are_claimed_one_by_one) {
    for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{1000}, any}) {
        LoaderPolicy policy{{.batch_size = 64, .num_workers = 2, .batches_budget_bytes = budget}};
        policy.observe(1000, 1000);
        BOOST_TEST(policy.claim_size() == (budget == 1000 ? 1u : 64u));
        BOOST_TEST(policy.claims_whole_batches() == (budget != 1000));
    }
}

BOOST_AUTO_TEST_CASE(until_one_batch_is_complete_only_one_is_open_unless_a_size_was_given) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 5, .batches_budget_bytes = 100}};
    policy.extend(10);
    BOOST_TEST(policy.admit().has_value());
    BOOST_TEST(!policy.admit().has_value());
    policy.holds(0, 30);   // an incomplete batch says little about its final size
    BOOST_TEST(!policy.admit().has_value());
    policy.complete(0, false);
    policy.holds(0, 30);
    std::size_t more = 0;
    while (policy.admit())
        ++more;
    BOOST_TEST(more == 2u);

    LoaderPolicy told{{.num_workers = 2, .prefetch_depth = 5, .batches_budget_bytes = 100, .batch_bytes_hint = 40}};
    told.extend(10);
    BOOST_TEST(told.admit().has_value());
    BOOST_TEST(told.admit().has_value());
    BOOST_TEST(!told.admit().has_value());
    told.holds(0, 61);   // still open, and already larger than expected
    told.holds(1, 1);
    BOOST_TEST(told.trims() == 0u);
    BOOST_TEST(!told.admit().has_value());
}

BOOST_AUTO_TEST_CASE(batches_given_up_count_until_their_workers_are_done) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 3, .batches_budget_bytes = 20, .batch_bytes_hint = 10}};
    policy.extend(10);
    while (policy.admit())
        ;
    policy.complete(0, false);
    policy.holds(0, 10);
    policy.abandon();
    policy.extend(10);
    BOOST_TEST(policy.admit()->slot == 0u);
    BOOST_TEST(!policy.admit().has_value());
    BOOST_TEST(!policy.complete(1, false));
    policy.holds(1, 10);
    BOOST_TEST(policy.admit()->slot == 1u);
}

BOOST_AUTO_TEST_CASE(a_loop_that_waits_gets_its_batch_as_soon_as_one_given_up_is_done) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 3, .batches_budget_bytes = 20}};
    policy.extend(10);
    BOOST_TEST(policy.admit()->slot == 0u);
    policy.abandon();
    policy.extend(10);
    BOOST_TEST(!policy.admit(0).has_value());
    policy.complete(0, false);
    policy.holds(0, 50);
    BOOST_TEST(policy.admit(0)->slot == 0u);
}

BOOST_AUTO_TEST_CASE(who_waits_for_bytes_is_woken_by_the_first_slot_that_comes_back) {
    LoaderPolicy policy{{.batch_size = 64, .num_workers = 2, .prefetch_depth = 8, .batches_budget_bytes = 20}};
    policy.extend(10);
    BOOST_TEST(policy.admit()->slot == 0u);
    BOOST_TEST(policy.wake_threshold() == 4u);
    policy.complete(0, false);
    policy.holds(0, 15);
    BOOST_TEST(policy.hand_over().has_value());
    BOOST_TEST(!policy.admit().has_value());
    BOOST_TEST(policy.wake_threshold() == 1u);
    policy.release(0);
    BOOST_TEST(policy.admit().has_value());
    BOOST_TEST(policy.wake_threshold() == 4u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
