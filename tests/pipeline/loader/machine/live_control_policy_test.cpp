#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <vector>

namespace drawpoint {
namespace {

BOOST_AUTO_TEST_SUITE(live_control_policy)

BOOST_AUTO_TEST_CASE(an_order_is_that_of_the_pass_whose_admission_has_not_begun) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 5}};
    policy.reorder(OrderRule::out_of_order());   // nothing is admitted yet, so it applies at once
    policy.extend(2);
    BOOST_TEST(policy.admit().has_value());
    policy.reorder(OrderRule::in_order());
    BOOST_TEST((policy.order() == OrderRule::out_of_order()));
    BOOST_TEST(policy.admit().has_value());
    policy.extend(2);   // another pass
    BOOST_TEST((policy.order() == OrderRule::in_order()));
    policy.reorder(OrderRule::bounded(3));   // none of the new pass's batches is admitted yet
    BOOST_TEST((policy.order() == OrderRule::bounded(3)));
    policy.reorder(OrderRule::in_order());
    while (policy.admit())
        ;
    // Batch n is in slot n. The older pass keeps its rule, though another one is in force.
    BOOST_TEST(policy.complete(3, false));
    BOOST_TEST(policy.complete(1, false));
    std::vector<std::uint64_t> order;
    const auto hand_over_all = [&] {
        while (const auto next = policy.hand_over())
            order.push_back(next->batch);
    };
    hand_over_all();
    BOOST_TEST(order == (std::vector<std::uint64_t>{1}), boost::test_tools::per_element());
    BOOST_TEST(policy.complete(0, false));
    hand_over_all();
    BOOST_TEST(policy.complete(2, false));
    hand_over_all();
    BOOST_TEST(order == (std::vector<std::uint64_t>{1, 0, 2, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_smaller_budget_holds_from_the_next_batch_on) {
    LoaderPolicy policy{{.num_workers = 1, .prefetch_depth = 3, .batches_budget_bytes = 1000, .batch_bytes_hint = 100}};
    policy.extend(10);
    for (std::uint32_t slot = 0; slot < 3; ++slot) {
        BOOST_TEST(policy.admit(0).has_value());
        policy.holds(slot, 100);
        policy.complete(slot, false);
    }
    policy.rebudget(250);
    BOOST_TEST(!policy.admit(0).has_value());
    while (policy.hand_over())
        ;
    policy.release(0);
    BOOST_TEST(!policy.admit(1).has_value());   // 200 bytes are out, and it takes 100
    policy.release(1);
    const auto next = policy.admit(2);
    BOOST_REQUIRE(next.has_value());
    BOOST_TEST(policy.trims() == (next->slot == 0 ? 2u : 1u));
    policy.rebudget(0);   // whether bytes are counted cannot change
    BOOST_TEST(policy.counts_bytes());
    LoaderPolicy uncounted{{.prefetch_depth = 3}};
    uncounted.rebudget(1);
    uncounted.extend(4);
    for (int i = 0; i < 4; ++i)
        BOOST_TEST(uncounted.admit().has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
