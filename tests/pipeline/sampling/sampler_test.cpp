#include <drawpoint/pipeline/sampling/sampler.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace drawpoint {
namespace {

std::vector<std::uint64_t> order_of(const Sampler& sampler, std::size_t epoch = 0) {
    std::vector<std::uint64_t> order(sampler.size());
    sampler.order(epoch, order);
    return order;
}

bool is_permutation(std::vector<std::uint64_t> order) {
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i)
        if (order[i] != i)
            return false;
    return true;
}

bool message_names(const std::exception& error, const char* words) {
    return std::string{error.what()}.find(words) != std::string::npos;
}

BOOST_AUTO_TEST_SUITE(sampler)

BOOST_AUTO_TEST_CASE(sequential_is_the_identity) {
    BOOST_TEST(order_of(SequentialSampler{4}) == (std::vector<std::uint64_t>{0, 1, 2, 3}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(random_is_a_permutation_for_every_size) {
    for (std::size_t n = 0; n < 200; ++n)
        BOOST_TEST(is_permutation(order_of(RandomSampler{n, n * 31})));
}

BOOST_AUTO_TEST_CASE(random_depends_on_seed_and_epoch_only) {
    BOOST_CHECK(order_of(RandomSampler{1000, 7}, 3) == order_of(RandomSampler{1000, 7}, 3));
    BOOST_CHECK(order_of(RandomSampler{1000, 7}, 3) != order_of(RandomSampler{1000, 7}, 4));
    BOOST_CHECK(order_of(RandomSampler{1000, 7}, 3) != order_of(RandomSampler{1000, 8}, 3));
}

BOOST_AUTO_TEST_CASE(every_permutation_of_four_is_about_as_frequent) {
    std::vector<int> counts(256);
    constexpr int epochs = 24'000;
    for (int epoch = 0; epoch < epochs; ++epoch) {
        const auto order = order_of(RandomSampler{4, 11}, static_cast<std::size_t>(epoch));
        ++counts[order[0] | order[1] << 2 | order[2] << 4 | order[3] << 6];
    }
    int seen = 0;
    double chi_square = 0.0;
    for (const int count : counts)
        if (count > 0) {
            ++seen;
            chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
        }
    BOOST_TEST(seen == 24);
    BOOST_TEST(chi_square < 49.7);   // 23 degrees of freedom, p = 0.001; the seed is fixed
}

BOOST_AUTO_TEST_CASE(weighted_draws_in_proportion_and_never_a_weight_of_zero) {
    const std::vector<double> weights{1.0, 0.0, 3.0, 0.0};
    const auto order = order_of(WeightedSampler{weights, 40'000, 5});
    const auto ones = std::count(order.begin(), order.end(), 0u), threes = std::count(order.begin(), order.end(), 2u);
    BOOST_TEST(ones + threes == 40'000);
    BOOST_TEST(std::abs(ones - 10'000) < 400);
}

BOOST_AUTO_TEST_CASE(weighted_refuses_a_weight_that_is_none_and_names_it) {
    for (const double wrong : {-1.0, std::nan(""), HUGE_VAL}) {
        const std::vector<double> weights{1.0, wrong};
        BOOST_CHECK_EXCEPTION((WeightedSampler{weights, 1, 0}), std::invalid_argument,
                              [](const auto& error) { return message_names(error, "weights[1]"); });
    }
    const std::vector<double> nothing{0.0, 0.0};
    BOOST_CHECK_THROW((WeightedSampler{nothing, 1, 0}), std::invalid_argument);
    BOOST_CHECK_THROW((WeightedSampler{{}, 1, 0}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(the_ranks_of_a_distributed_sampler_share_the_whole_order) {
    for (std::size_t n = 0; n < 30; ++n)
        for (std::size_t ranks = 1; ranks < 6; ++ranks) {
            const RandomSampler all{n, 3};
            std::multiset<std::uint64_t> padded, cut;
            for (std::size_t rank = 0; rank < ranks; ++rank) {
                const auto with_all = order_of(DistributedSampler{all, rank, ranks}, 2);
                const auto dropping = order_of(DistributedSampler{all, rank, ranks, true}, 2);
                BOOST_TEST(with_all.size() == (n + ranks - 1) / ranks);
                BOOST_TEST(dropping.size() == n / ranks);
                padded.insert(with_all.begin(), with_all.end());
                cut.insert(dropping.begin(), dropping.end());
            }
            for (std::uint64_t i = 0; i < n; ++i) {
                BOOST_TEST(padded.count(i) >= 1u);
                BOOST_TEST(cut.count(i) <= 1u);
            }
        }
}

BOOST_AUTO_TEST_CASE(distributed_refuses_a_rank_that_is_none) {
    const SequentialSampler all{10};
    BOOST_CHECK_EXCEPTION((DistributedSampler{all, 2, 2}), std::invalid_argument, [](const auto& error) {
        return message_names(error, "rank must be below ranks = 2, got 2");
    });
    BOOST_CHECK_EXCEPTION((DistributedSampler{all, 0, 0}), std::invalid_argument,
                          [](const auto& error) { return message_names(error, "ranks must be at least 1, got 0"); });
}

BOOST_AUTO_TEST_CASE(fixed_gives_the_same_list_every_epoch) {
    const FixedSampler fixed{{5, 5, 1}};
    BOOST_TEST(order_of(fixed, 0) == (std::vector<std::uint64_t>{5, 5, 1}), boost::test_tools::per_element());
    BOOST_CHECK(order_of(fixed, 0) == order_of(fixed, 9));
}

BOOST_AUTO_TEST_CASE(a_repeated_sampler_begins_as_the_other_and_then_turns_round_one_block_an_epoch) {
    const FixedSampler of{{5, 3, 1, 4, 2, 9, 7}};
    const RepeatedSampler sampler{of, 3, 2};
    const auto is = [&](std::size_t epoch, const std::vector<std::uint64_t>& expected) {
        BOOST_TEST(order_of(sampler, epoch) == expected, boost::test_tools::per_element());
    };
    is(0, {5, 3, 1, 4, 2, 9});
    is(1, {5, 3, 1, 5, 3, 1});
    is(2, {4, 2, 9, 4, 2, 9});
    is(3, {5, 3, 1, 5, 3, 1});
    const RepeatedSampler longer{of, 100, 2};
    for (const std::size_t epoch : {0u, 1u})
        BOOST_TEST(order_of(longer, epoch) == (std::vector<std::uint64_t>{5, 3, 1, 4, 2, 9, 7, 5, 3, 1, 4, 2, 9, 7}),
                   boost::test_tools::per_element());
    BOOST_TEST(order_of(RepeatedSampler{SequentialSampler{0}, 4, 3}).empty());
    BOOST_CHECK_THROW((RepeatedSampler{of, 0, 1}), std::invalid_argument);
    BOOST_CHECK_THROW((RepeatedSampler{of, 1, 0}), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
