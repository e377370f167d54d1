#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <random>

#include "pipeline/loader/machine/bytes_in_virtual_time.hpp"
#include "pipeline/loader/orders.hpp"

namespace drawpoint {
namespace {

using test::Driven;

BOOST_AUTO_TEST_SUITE(loader_policy_budget)

BOOST_AUTO_TEST_CASE(no_more_than_the_budget_is_held_as_long_as_no_batch_is_larger_than_expected) {
    std::uint64_t steps = 0, filled = 0;
    for (std::uint64_t seed = 0; steps < 100'000; ++seed) {
        std::mt19937_64 random{seed};
        const std::uint64_t most = 1 + random() % 1000, budget = 2 * most + random() % (20 * most);
        Driven driven{{.num_workers = 3,
                       .prefetch_depth = 1 + random() % 30,
                       .order = test::nth_order(random(), 2),
                       .batches_budget_bytes = budget,
                       .batch_bytes_hint = most},
                      [&](std::uint64_t) { return 1 + random() % most; },
                      seed};
        driven.open_at_once = 1 + random() % 6;
        driven.policy.extend(60);
        while (driven.step()) {
            ++steps;
            BOOST_REQUIRE_LE(driven.total(), budget);
        }
        BOOST_REQUIRE_EQUAL(driven.drawn_count, 60u);
        filled += driven.peak > budget - 2 * most;
    }
    BOOST_TEST(filled > 20u);   // the budget is used up
}

BOOST_AUTO_TEST_CASE(whatever_batches_take_one_at_a_time_exceeds_the_budget_by_one_batch_at_most) {
    std::uint64_t steps = 0, beyond = 0;
    for (std::uint64_t seed = 0; steps < 100'000; ++seed) {
        std::mt19937_64 random{seed};
        const std::uint64_t budget = 1 + random() % 100'000;
        Driven driven{{.num_workers = 1, .prefetch_depth = 1 + random() % 30, .batches_budget_bytes = budget},
                      [&](std::uint64_t batch) {
                          switch (seed % 3) {
                          case 0: return std::uint64_t{1} << std::min<std::uint64_t>(batch, 40);   // grows for ever
                          case 1: return std::uint64_t{1} << (random() % 18);
                          default: return batch % 7 == 6 ? budget + random() % budget : 1 + random() % (budget / 2 + 1);
                          }
                      },
                      seed};
        driven.open_at_once = 1;
        driven.policy.extend(60);
        while (driven.step()) {
            ++steps;
            BOOST_REQUIRE_LE(driven.total(), std::max(budget, driven.bytes_out()) + driven.largest);
            beyond += driven.total() > budget;
        }
        BOOST_REQUIRE_EQUAL(driven.drawn_count, 60u);
        driven.turn(false);   // all batches are given back
        BOOST_REQUIRE_LE(driven.total(), budget);
    }
    BOOST_TEST(beyond > 0u);
}

BOOST_AUTO_TEST_CASE(what_is_beyond_the_budget_is_growth_of_batches_that_were_open_together) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        constexpr std::uint64_t budget = 1000;
        Driven driven{{.num_workers = 2, .prefetch_depth = 55, .batches_budget_bytes = budget},
                      [](std::uint64_t batch) { return 1 + batch * 3; },   // each is larger than all before
                      seed};
        driven.open_at_once = 2;
        driven.policy.extend(300);
        while (driven.step())
            // Two batches were open, each at most 3 × 56 larger than the largest complete one; or a single batch.
            BOOST_REQUIRE_LE(driven.total(), std::max(budget + 2 * 3 * 56, driven.bytes_out() + 2 * driven.largest));
        BOOST_REQUIRE_EQUAL(driven.drawn_count, 300u);
    }
}

BOOST_AUTO_TEST_CASE(every_batch_is_made_however_small_the_budget_and_however_many_the_loop_holds) {
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        std::mt19937_64 random{seed};
        Driven driven{{.num_workers = 1 + seed % 4,
                       .prefetch_depth = 1 + random() % 10,
                       .order = test::nth_order(seed, 1),
                       .batches_budget_bytes = 1 + random() % 50},
                      [&](std::uint64_t) { return 1 + random() % 100; },
                      seed};
        driven.user_holds = 1 + random() % driven.policy.slots();
        driven.open_at_once = 1 + random() % 4;
        driven.policy.extend(40);
        std::size_t steps = 0;
        while (driven.step())
            BOOST_REQUIRE(++steps < 10'000);
        BOOST_TEST(driven.drawn_count == 40u);
    }
}

BOOST_AUTO_TEST_CASE(without_workers_every_batch_is_made_too) {
    LoaderPolicy policy{{.num_workers = 0, .prefetch_depth = 4, .batches_budget_bytes = 10}};
    policy.extend(5);
    for (std::uint64_t i = 0; i < 5; ++i) {
        const auto admission = policy.admit(i);
        BOOST_REQUIRE(admission.has_value());
        policy.complete(admission->slot, false);
        policy.holds(admission->slot, 25);
        BOOST_REQUIRE(policy.hand_over().has_value());
        BOOST_TEST(!policy.admit(i).has_value());   // not drawn yet
        if (i % 2 == 1)
            policy.release(admission->slot);
    }
}

BOOST_AUTO_TEST_CASE(without_a_budget_nothing_is_counted) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 3}};
    BOOST_TEST(!policy.counts_bytes());
    policy.extend(100);
    while (policy.admit())
        ;
    BOOST_TEST(std::popcount(policy.in_flight()) == 4);
    BOOST_TEST(policy.trims() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
