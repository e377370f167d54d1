#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "pipeline/loader/machine/bytes_in_virtual_time.hpp"

namespace drawpoint {
namespace {

using test::Driven;

constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();

BOOST_AUTO_TEST_SUITE(loader_policy_expectation)

BOOST_AUTO_TEST_CASE(
    after_a_quarter_of_a_pass_the_peak_is_known_within_a_tenth_and_exceeds_the_budget_by_one_batch_at_most) {
    constexpr std::uint64_t batches = 512, largest = 1'000'000;
    struct Kind {
        std::uint64_t least;   // the lower limit of the sizes
        bool keeps;            // slots keep the memory of their largest batch
        std::size_t depth;
    };
    for (const Kind kind : {Kind{largest, true, 55}, Kind{largest / 2, true, 55}, Kind{largest / 2, false, 55},
                            Kind{largest / 10, true, 55}, Kind{largest / 2, false, 4}, Kind{largest / 10, true, 4}})
        for (const std::uint64_t tenths : {20u, 23u, 30u, 37u, 45u, 60u, 100u, 200u, 400u, 900u})
            for (std::uint64_t seed = 0; seed < 10; ++seed) {
                std::mt19937_64 random{seed};
                const std::uint64_t budget = largest / 10 * tenths;
                Driven driven{{.num_workers = 2, .prefetch_depth = kind.depth, .batches_budget_bytes = budget},
                              [&](std::uint64_t) { return kind.least + random() % (largest - kind.least + 1); },
                              seed};
                driven.keeps_memory = kind.keeps;
                driven.policy.extend(3 * batches);
                std::uint64_t expected = 0;
                while (driven.drawn_count < 3 * batches) {
                    if (driven.drawn_count % 8 == 0)   // a slow step: the loader prefetches as far as it can
                        while (!driven.open.empty())
                            driven.complete_one();
                    while (driven.ready.empty()) {
                        if (driven.open.empty())
                            driven.turn(true);
                        if (!driven.open.empty())
                            driven.complete_one();
                    }
                    driven.draw_one();
                    if (driven.drawn.size() == 2) {   // the loop holds one batch until it has the next
                        driven.policy.release(driven.drawn.front().slot);
                        driven.drawn.erase(driven.drawn.begin());
                        driven.turn(false);
                    }
                    if (driven.drawn_count == batches / 4)
                        expected = driven.policy.expected_batches_bytes();
                }
                const double ratio = static_cast<double>(driven.peak) / static_cast<double>(expected);
                BOOST_TEST((ratio >= 0.9 && ratio <= 1.1),
                           "least " << kind.least << ", keeps " << kind.keeps << ", depth " << kind.depth << ", budget "
                                    << budget << ", seed " << seed << ": " << driven.peak << " of " << expected);
                BOOST_TEST(driven.peak <= budget + driven.largest);
            }
}

BOOST_AUTO_TEST_CASE(with_a_budget_beyond_all_memory_the_depth_alone_decides) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 9, .batches_budget_bytes = any}};
    BOOST_TEST(policy.counts_bytes());
    BOOST_TEST(policy.expected_batches_bytes() == 0u);
    policy.extend(100);
    while (policy.admit(0, 1))
        ;
    BOOST_TEST(std::popcount(policy.in_flight()) == 10);
    policy.complete(0, false);
    policy.holds(0, 7);
    BOOST_TEST(policy.expected_batches_bytes() == 70u);
    policy.holds(3, any / 2);
    policy.complete(3, false);
    policy.holds(3, any / 2);
    BOOST_TEST(policy.trims() == 0u);
    BOOST_TEST(policy.expected_batches_bytes() >= any / 2 * 2);   // no sum overflows
}

BOOST_AUTO_TEST_CASE(memory_that_passes_on_to_another_slot_is_no_sign_that_slots_shrink) {
    for (const bool passes : {true, false}) {
        LoaderPolicy policy{{.num_workers = 1, .prefetch_depth = 3, .batches_budget_bytes = 1000}};
        policy.extend(100);
        for (int i = 0; i < 40; ++i) {
            const auto admission = policy.admit();
            BOOST_REQUIRE(admission.has_value());
            policy.complete(admission->slot, false);
            policy.holds(admission->slot, 10);
            BOOST_REQUIRE(policy.hand_over().has_value());
            policy.release(admission->slot);
            policy.holds(admission->slot, 15, passes ? 5 : 0);
        }
        // Three complete batches and one of 15: each slot may still grow to that, or they stay at 10.
        BOOST_TEST(policy.expected_batches_bytes() == (passes ? 15 + 3 * 15u : 15 + 3 * 10u));
    }
}

BOOST_AUTO_TEST_CASE(of_batches_larger_than_the_budget_one_is_expected) {
    const LoaderPolicy policy{{.prefetch_depth = 9, .batches_budget_bytes = 10, .batch_bytes_hint = 25}};
    BOOST_TEST(policy.expected_batches_bytes() == 25u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
