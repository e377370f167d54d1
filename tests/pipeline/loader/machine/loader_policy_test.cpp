#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "pipeline/loader/orders.hpp"

namespace drawpoint {
namespace {

/// A driver in virtual time: completes open batches in random order, and holds up to `held` drawn ones.
struct Driven {
    LoaderPolicy policy;
    std::mt19937_64 random;
    std::map<std::uint64_t, std::uint32_t> open{}, held{};   // batch -> slot
    std::vector<LoaderPolicy::HandOver> handed{};
    std::set<std::uint32_t> used{};

    void admit_all() {
        while (const auto admission = policy.admit(handed.size())) {
            BOOST_TEST(used.insert(admission->slot).second);
            BOOST_TEST(open.emplace(admission->batch, admission->slot).second);
        }
        BOOST_TEST(used.size() <= policy.slots());
    }
    void hand_over_all() {
        while (const auto next = policy.hand_over()) {
            BOOST_TEST(next->position == handed.size());
            handed.push_back(*next);
            held.emplace(next->batch, next->slot);
        }
    }
    void complete_one() {
        auto at = open.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random() % open.size()));
        BOOST_TEST(policy.complete(at->second, at->first % 7 == 3));
        open.erase(at);
    }
    void release_one() {
        auto at = held.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random() % held.size()));
        policy.release(at->second);
        used.erase(at->second);
        held.erase(at);
    }
    void run(std::uint64_t batches) { run_passes({batches}); }
    /// Runs passes; each begins as soon as the one before is completely admitted.
    void run_passes(std::vector<std::uint64_t> passes) {
        std::uint64_t left = 0, next = 0;
        for (const std::uint64_t batches : passes)
            left += batches;
        for (left += handed.size(); handed.size() < left;) {
            for (; next < passes.size() && policy.admitted() == policy.limit(); ++next) {
                policy.extend(passes[next]);
                admit_all();
            }
            admit_all();
            hand_over_all();
            if (!open.empty() && (held.empty() || random() % 3 != 0))
                complete_one();
            else if (!held.empty())
                release_one();
        }
    }
};

BOOST_AUTO_TEST_SUITE(loader_policy)

BOOST_AUTO_TEST_CASE(in_order_hands_over_every_batch_once_in_order_of_admission) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        Driven driven{LoaderPolicy{{.num_workers = seed % 4, .prefetch_depth = 1 + seed % 9}}, std::mt19937_64{seed}};
        driven.run(seed % 60);
        for (std::size_t i = 0; i < driven.handed.size(); ++i) {
            BOOST_TEST(driven.handed[i].batch == i);
            BOOST_TEST(driven.handed[i].failed == (i % 7 == 3));
        }
        driven.admit_all();
        BOOST_TEST(driven.open.empty());
        BOOST_TEST(!driven.policy.hand_over().has_value());
    }
}

BOOST_AUTO_TEST_CASE(out_of_order_hands_over_in_order_of_completion) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 3, .order = OrderRule::out_of_order()}};
    policy.extend(4);
    while (policy.admit())
        ;
    for (const std::uint32_t slot : {2u, 0u, 3u, 1u}) {
        policy.complete(slot, false);
        const auto next = policy.hand_over();
        BOOST_REQUIRE(next.has_value());
        BOOST_TEST(next->slot == slot);
    }
    for (const std::uint32_t slot : {0u, 1u, 2u, 3u})
        policy.release(slot);
    policy.extend(3);
    while (policy.admit())
        ;
    for (const std::uint32_t slot : {1u, 2u, 0u})
        policy.complete(slot, false);
    std::vector<std::uint64_t> order;
    while (const auto next = policy.hand_over())
        order.push_back(next->batch);
    BOOST_TEST(order == (std::vector<std::uint64_t>{5, 6, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bounded_order_overtakes_no_batch_more_often_than_allowed) {
    bool some_overtaken = false;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const auto most = static_cast<std::uint32_t>(seed % 4);
        Driven driven{
            LoaderPolicy{{.num_workers = 2, .prefetch_depth = 1 + seed % 9, .order = OrderRule::bounded(most)}},
            std::mt19937_64{seed}};
        driven.run(60);
        std::set<std::uint64_t> all;
        for (std::size_t i = 0; i < driven.handed.size(); ++i) {
            all.insert(driven.handed[i].batch);
            std::size_t overtaken = 0;
            for (std::size_t before = 0; before < i; ++before)
                overtaken += driven.handed[before].batch > driven.handed[i].batch;
            BOOST_TEST(overtaken <= most);
            some_overtaken |= overtaken == most && most > 0;
        }
        BOOST_TEST(all.size() == 60);
    }
    BOOST_TEST(some_overtaken);
}

BOOST_AUTO_TEST_CASE(no_batch_of_a_pass_comes_before_the_last_one_of_the_pass_before) {
    bool another_order = false;
    for (std::uint64_t seed = 0; seed < 600; ++seed) {
        const OrderRule order = test::nth_order(seed, 2);
        Driven driven{LoaderPolicy{{.num_workers = 2, .prefetch_depth = 1 + seed % 9, .order = order}},
                      std::mt19937_64{seed}};
        const std::vector<std::uint64_t> passes{1 + seed % 7, 1, 5, seed % 11, 3};
        driven.run_passes(passes);
        std::uint64_t first = 0;
        for (const std::uint64_t batches : passes) {
            std::set<std::uint64_t> numbers;
            for (std::uint64_t i = first; i < first + batches; ++i) {
                another_order |= driven.handed[i].batch != i;
                BOOST_TEST(driven.handed[i].batch >= first);
                BOOST_TEST(driven.handed[i].batch < first + batches);
                BOOST_TEST(numbers.insert(driven.handed[i].batch).second);
            }
            first += batches;
        }
    }
    BOOST_TEST(another_order);
}

BOOST_AUTO_TEST_CASE(no_more_than_depth_plus_one_batches_have_a_slot) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 55}};
    policy.extend(100);
    std::uint64_t slots = 0;
    while (const auto admission = policy.admit())
        slots |= std::uint64_t{1} << admission->slot;
    BOOST_TEST(std::popcount(slots) == 56);
}

BOOST_AUTO_TEST_CASE(without_workers_one_batch_is_admitted_at_a_time_and_only_when_none_waits) {
    LoaderPolicy policy{{.num_workers = 0, .prefetch_depth = 4}};
    policy.extend(3);
    const auto first = policy.admit(0);
    BOOST_REQUIRE(first.has_value());
    BOOST_TEST(!policy.admit(0).has_value());
    policy.complete(first->slot, false);
    BOOST_TEST(!policy.admit(0).has_value());
    BOOST_TEST(policy.hand_over().has_value());
    BOOST_TEST(!policy.admit(0).has_value());
    BOOST_TEST(policy.admit(1).has_value());
}

BOOST_AUTO_TEST_CASE(an_abandoned_batch_is_never_handed_over_and_frees_its_slot_when_complete) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 2}};
    policy.extend(10);
    while (policy.admit())
        ;
    policy.complete(1, false);
    const auto given_up = policy.abandon();
    BOOST_TEST(given_up.open == 0b101u);
    BOOST_TEST(given_up.complete == 0b010u);
    BOOST_TEST(!policy.hand_over().has_value());
    BOOST_TEST(policy.limit() == policy.admitted());
    policy.extend(5);
    const auto next = policy.admit();
    BOOST_REQUIRE(next.has_value());
    BOOST_TEST(next->slot == 1u);
    BOOST_TEST(!policy.admit().has_value());
    BOOST_TEST(!policy.complete(0, false));
    BOOST_TEST(!policy.hand_over().has_value());
    const auto again = policy.admit();
    BOOST_REQUIRE(again.has_value());
    BOOST_TEST(again->slot == 0u);
    BOOST_TEST(policy.complete(1, false));
    const auto handed = policy.hand_over();
    BOOST_REQUIRE(handed.has_value());
    BOOST_TEST(handed->batch == 3u);
    BOOST_TEST(handed->position == 0u);
}

BOOST_AUTO_TEST_CASE(nothing_happens_after_stop) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 2}};
    policy.extend(10);
    BOOST_TEST(policy.admit().has_value());
    policy.stop();
    BOOST_TEST(!policy.admit().has_value());
    policy.complete(0, false);
    BOOST_TEST(!policy.hand_over().has_value());
}

BOOST_AUTO_TEST_CASE(a_smaller_depth_takes_effect_as_slots_come_back_and_a_larger_one_at_once) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 3}};
    policy.extend(100);
    while (policy.admit())
        ;
    policy.retarget(2, 1);
    for (std::uint32_t slot = 0; slot < 4; ++slot) {
        policy.complete(slot, false);
        BOOST_TEST(policy.hand_over().has_value());
    }
    policy.release(3);
    policy.release(2);
    BOOST_TEST(!policy.admit().has_value());
    policy.release(0);
    BOOST_TEST(policy.admit().has_value());
    BOOST_TEST(!policy.admit().has_value());
    policy.retarget(2, 5);
    std::size_t more = 0;
    while (policy.admit())
        ++more;
    BOOST_TEST(more == 4u);
}

BOOST_AUTO_TEST_CASE(a_claim_is_one_large_sample_or_a_whole_tiny_batch) {
    LoaderPolicy jpeg{{.batch_size = 64, .num_workers = 2}}, rows{{.batch_size = 64, .num_workers = 2}},
        middle{{.batch_size = 64, .num_workers = 2}};
    BOOST_TEST(jpeg.claim_size() == 1u);
    BOOST_TEST(!rows.claims_whole_batches());   // not measured yet
    jpeg.observe(64, 64 * 400'000);
    BOOST_TEST(jpeg.claim_size() == 1u);
    rows.observe(64, 130);
    BOOST_TEST(rows.claim_size() == 64u);
    BOOST_TEST(rows.claims_whole_batches());
    BOOST_TEST(!jpeg.claims_whole_batches());
    middle.observe(10, 10 * 1'000);
    BOOST_TEST(middle.claim_size() == 32u);
    BOOST_TEST(!middle.claims_whole_batches());
}

BOOST_AUTO_TEST_CASE(a_claim_is_never_empty_nor_larger_than_a_batch) {
    std::mt19937_64 random{7};
    for (int i = 0; i < 10'000; ++i) {
        const std::size_t batch = 1 + random() % 1000;
        LoaderPolicy policy{{.batch_size = batch, .num_workers = random() % 5}};
        policy.observe(1 + random() % 100, random() % (std::uint64_t{1} << (random() % 40)));
        BOOST_TEST(policy.claim_size() >= 1u);
        BOOST_TEST(policy.claim_size() <= batch);
    }
}

BOOST_AUTO_TEST_CASE(when_all_workers_sleep_new_work_wakes_at_least_one) {
    LoaderPolicy policy{{.batch_size = 64, .num_workers = 2}};
    policy.begin();
    policy.begin();
    policy.observe(64, 130);
    policy.park();
    BOOST_TEST(policy.wake(64) == 0u);   // the other worker is awake
    policy.park();
    BOOST_TEST(policy.wake(0) == 0u);
    BOOST_TEST(policy.wake(64) == 1u);
    BOOST_TEST(policy.parked() == 1u);
}

BOOST_AUTO_TEST_CASE(much_work_wakes_everybody) {
    LoaderPolicy policy{{.batch_size = 64, .num_workers = 4}};
    for (int worker = 0; worker < 4; ++worker)
        policy.begin();
    policy.observe(1, 400'000);
    for (int worker = 0; worker < 3; ++worker)
        policy.park();
    BOOST_TEST(policy.wake(64) == 3u);
    BOOST_TEST(policy.parked() == 0u);
}

BOOST_AUTO_TEST_CASE(workers_that_wait_for_cores_and_for_nothing_else_are_no_more_than_these) {
    LoaderPolicy policy{{.batch_size = 64, .num_workers = 6, .cores = 2}};
    BOOST_TEST(policy.may_have_too_many());
    policy.observe_use({.claims = 15, .computed_ns = 15'000'000, .queued_ns = 3'000'000});
    BOOST_TEST(policy.wanted_workers() == 6u);   // not enough is known yet
    policy.observe_use({.claims = 1, .computed_ns = 1'000'000, .queued_ns = 200'000});
    BOOST_TEST(policy.wanted_workers() == 2u);
    policy.retarget(2, 2);
    BOOST_TEST(!policy.may_have_too_many());
    policy.retarget(5, 2);
    BOOST_TEST(policy.wanted_workers() == 2u);   // now it is known what the workers do
}

BOOST_AUTO_TEST_CASE(a_claim_leaves_a_share_for_every_worker_that_is_wanted) {
    LoaderPolicy policy{{.batch_size = 60, .num_workers = 6, .cores = 2}};
    policy.observe(60, 60'000);
    BOOST_TEST(policy.claim_size() == 20u);   // 20 µs, otherwise 10
    policy.observe_use({.claims = 16, .computed_ns = 1'000'000, .queued_ns = 1'000'000});
    BOOST_TEST(policy.claim_size() == 30u);
}

BOOST_AUTO_TEST_CASE(workers_that_wait_are_as_many_as_asked_for) {
    LoaderPolicy policy{{.num_workers = 6, .cores = 2}};
    const auto wanted = [&policy](double waits) {   // after so many claims that the earlier ones are forgotten
        policy.observe_use({.claims = 10'000,
                            .computed_ns = static_cast<std::uint64_t>((1 - waits) * 1e9),
                            .queued_ns = 1'000'000'000,
                            .waited_ns = static_cast<std::uint64_t>(waits * 1e9)});
        return policy.wanted_workers();
    };
    BOOST_TEST(wanted(0.06) == 6u);
    BOOST_TEST(wanted(0.04) == 2u);
    BOOST_TEST(wanted(0.14) == 2u);   // a decision changes only when the share is clearly beyond the limit
    BOOST_TEST(wanted(0.16) == 6u);
    BOOST_TEST(wanted(0.06) == 6u);
    BOOST_TEST(wanted(0) == 2u);
}

BOOST_AUTO_TEST_CASE(workers_that_never_queue_are_as_many_as_asked_for) {
    LoaderPolicy policy{{.num_workers = 6, .cores = 2}};
    policy.observe_use({.claims = 10'000, .computed_ns = 1'000'000'000, .queued_ns = 9'000'000});
    BOOST_TEST(policy.wanted_workers() == 6u);
    policy.observe_use({.claims = 10'000, .computed_ns = 1'000'000'000, .queued_ns = 11'000'000});
    BOOST_TEST(policy.wanted_workers() == 2u);
    policy.observe_use({.claims = 10'000, .computed_ns = 1'000'000'000});   // by the workers that are left
    BOOST_TEST(policy.wanted_workers() == 2u);
}

BOOST_AUTO_TEST_CASE(rare_long_waits_are_remembered) {
    LoaderPolicy policy{{.num_workers = 6, .cores = 2}};
    for (int claim = 0; claim < 2000; ++claim) {   // 2 ms each, and one in a hundred waits 50 ms
        policy.observe_use({.claims = 1,
                            .computed_ns = 2'000'000,
                            .queued_ns = 2'000'000,
                            .waited_ns = claim % 100 == 10 ? 50'000'000u : 0u});
        BOOST_TEST(policy.wanted_workers() == 6u);
    }
}

BOOST_AUTO_TEST_CASE(where_cores_suffice_or_are_unknown_all_workers_are_wanted) {
    for (const std::size_t cores : {0u, 6u, 8u}) {
        LoaderPolicy policy{{.num_workers = 6, .cores = cores}};
        policy.observe_use({.claims = 100, .computed_ns = 1'000'000, .queued_ns = 1'000'000});
        BOOST_TEST(!policy.may_have_too_many());
        BOOST_TEST(policy.wanted_workers() == 6u);
    }
}

BOOST_AUTO_TEST_CASE(long_batches_wake_for_every_slot_short_ones_for_half_of_them) {
    LoaderPolicy policy{{.batch_size = 64, .num_workers = 2, .prefetch_depth = 8}};
    BOOST_TEST(policy.wake_threshold() == 4u);
    policy.observe(1, 400'000);
    BOOST_TEST(policy.wake_threshold() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
