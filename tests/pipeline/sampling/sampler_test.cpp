#include <drawpoint/pipeline/sampling/sampler.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/sampling/keyed_permutation.hpp"

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
    const std::vector<double> weights{1.0, 2.0};
    BOOST_CHECK_NO_THROW((WeightedSampler{weights, std::size_t{1} << 33, 0}));
    BOOST_CHECK_EXCEPTION((WeightedSampler{weights, (std::size_t{1} << 33) + 1, 0}), std::invalid_argument,
                          [](const auto& error) { return message_names(error, "at most 8589934592"); });
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

BOOST_AUTO_TEST_CASE(parts_are_the_order_whatever_their_begin_and_stride) {
    const RandomSampler large{131'073, 3}, larger{1'000'003, 4};
    const SequentialSampler sequence{1000};
    const WeightedSampler weighted{std::vector<double>{1, 2, 0, 4, 1}, 999, 6};
    const FixedSampler fixed{{5, 3, 9, 3}};
    const RepeatedSampler repeated{RandomSampler{100, 1}, 30, 4};
    const DistributedSampler share{large, 2, 7}, cut{large, 2, 7, true}, of_share{share, 1, 3}, padded{fixed, 6, 7};
    BOOST_CHECK((RandomSampler{131'072, 3}.parts() == nullptr));
    for (const Sampler* const sampler :
         {static_cast<const Sampler*>(&large), static_cast<const Sampler*>(&larger),
          static_cast<const Sampler*>(&sequence), static_cast<const Sampler*>(&weighted),
          static_cast<const Sampler*>(&fixed), static_cast<const Sampler*>(&repeated),
          static_cast<const Sampler*>(&share), static_cast<const Sampler*>(&cut),
          static_cast<const Sampler*>(&of_share), static_cast<const Sampler*>(&padded)}) {
        BOOST_REQUIRE(sampler->parts() != nullptr);
        for (const std::size_t epoch : {0u, 3u}) {
            const auto whole = order_of(*sampler, epoch);
            for (const std::uint64_t stride : {1u, 2u, 5u})
                for (std::uint64_t first = 0; first < whole.size(); first += 1 + whole.size() / 3) {
                    std::vector<std::uint64_t> part(
                        std::min<std::size_t>(100, (whole.size() - first + stride - 1) / stride));
                    sampler->parts()->part(epoch, first, stride, part);
                    for (std::size_t i = 0; i < part.size(); ++i)
                        BOOST_REQUIRE_EQUAL(part[i], whole[first + i * stride]);
                }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_sampler_of_many_samples_is_a_permutation_and_epochs_and_seeds_differ) {
    for (const std::size_t n : {131'073u, 200'000u, 262'144u, 262'145u, 700'001u})
        BOOST_TEST(is_permutation(order_of(RandomSampler{n, n}, 2)));
    const auto order = order_of(RandomSampler{200'000, 7}, 3);
    for (const auto& other : {order_of(RandomSampler{200'000, 7}, 4), order_of(RandomSampler{200'000, 8}, 3)}) {
        std::size_t equal = 0;
        for (std::size_t i = 0; i < order.size(); ++i)
            equal += order[i] == other[i];
        BOOST_TEST(equal < 12u);   // one is expected
    }
}

/// The sum of (found - expected)^2 / expected over `counts`.
double chi_square_of(const std::vector<int>& counts, double expected) {
    double sum = 0;
    for (const int count : counts)
        sum += (count - expected) * (count - expected) / expected;
    return sum;
}

BOOST_AUTO_TEST_CASE(a_keyed_permutation_is_uniform_in_places_in_pairs_and_in_neighbours) {
    // Of 24 values over 24,000 keys: where place p goes, and where it goes given where the place before goes.
    constexpr std::uint64_t n = 24, keys = 24'000;
    std::vector<int> places(n * n), pairs(n * n), steps(n - 1);
    for (std::uint64_t key = 0; key < keys; ++key) {
        const KeyedPermutation permutation{n, CounterRng{key, 0, 0}};
        for (std::uint64_t i = 0; i < n; ++i)
            ++places[i * n + permutation(i)];
        ++pairs[permutation(3) * n + permutation(17)];
        ++steps[(permutation(12) + n - permutation(11)) % n - 1];
    }
    BOOST_TEST(chi_square_of(places, keys / n) < 650);   // 23 x 23 degrees of freedom: 529 +- 33
    for (std::uint64_t i = 0; i < n; ++i) {
        BOOST_TEST(pairs[i * n + i] == 0);
        pairs[i * n + i] = keys / (n * (n - 1));
    }
    BOOST_TEST(chi_square_of(pairs, static_cast<double>(keys) / (n * (n - 1))) < 670);   // 551 +- 33
    BOOST_TEST(chi_square_of(steps, static_cast<double>(keys) / (n - 1)) < 48.3);        // 22: p = 0.001
}

BOOST_AUTO_TEST_CASE(skipped_numbers_are_those_that_would_have_come) {
    for (std::uint64_t first = 0; first < 9; ++first)
        for (std::uint64_t skipped = 0; skipped < 12; ++skipped) {
            CounterRng drawn{5, 6, 7}, jumped{5, 6, 7};
            for (std::uint64_t i = 0; i < first; ++i)
                BOOST_REQUIRE(drawn.next_u32() == jumped.next_u32());
            for (std::uint64_t i = 0; i < skipped; ++i)
                (void)drawn.next_u32();
            jumped.discard(skipped);
            for (int i = 0; i < 9; ++i)
                BOOST_REQUIRE(drawn.next_u32() == jumped.next_u32());
        }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
