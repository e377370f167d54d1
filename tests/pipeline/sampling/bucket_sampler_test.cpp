#include <drawpoint/pipeline/sampling/bucket_sampler.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/count_allocations.hpp"

namespace drawpoint {
namespace {

std::vector<std::uint64_t> order_of(const Sampler& sampler, std::size_t epoch = 0) {
    std::vector<std::uint64_t> order(sampler.size());
    sampler.order(epoch, order);
    return order;
}

/// Lengths distributed like those of sentences: many short, a few long.
std::vector<std::uint32_t> sentences(std::size_t n) {
    std::vector<std::uint32_t> lengths(n);
    for (std::size_t i = 0; i < n; ++i)
        lengths[i] = static_cast<std::uint32_t>(
            5 + 200 * std::pow(static_cast<double>(i * 7919 % n) / static_cast<double>(n), 3));
    return lengths;
}

template <class F>
std::string refusal(F f) {
    try {
        f();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "accepted";
}

BOOST_AUTO_TEST_SUITE(bucket_sampler)

BOOST_AUTO_TEST_CASE(every_index_comes_once_whatever_the_sizes) {
    for (std::size_t n = 0; n < 90; ++n)
        for (const std::size_t batch_size : {1u, 3u, 8u, 100u})
            for (const std::size_t buckets : {1u, 2u, 7u}) {
                auto order = order_of(BucketSampler{sentences(n), batch_size, n, {.bucket_batches = buckets}}, 5);
                std::ranges::sort(order);
                for (std::size_t i = 0; i < n; ++i)
                    BOOST_REQUIRE(order[i] == i);
            }
}

BOOST_AUTO_TEST_CASE(the_order_depends_on_seed_and_epoch_only) {
    const auto lengths = sentences(1000);
    const auto of = [&](std::uint64_t seed, std::size_t epoch) {
        return order_of(BucketSampler{lengths, 16, seed}, epoch);
    };
    BOOST_TEST((of(7, 3) == of(7, 3)));
    BOOST_TEST((of(7, 3) != of(7, 4)));
    BOOST_TEST((of(7, 3) != of(8, 3)));
}

BOOST_AUTO_TEST_CASE(batches_are_of_similar_length_so_little_is_padding) {
    const auto lengths = sentences(10'000);
    const double random = padding_share(order_of(RandomSampler{lengths.size(), 3}), lengths, 32);
    const double bucketed = padding_share(order_of(BucketSampler{lengths, 32, 3}), lengths, 32);
    const double sorted =
        padding_share(order_of(BucketSampler{lengths, 32, 3, {.bucket_batches = 1'000'000}}), lengths, 32);
    BOOST_TEST_MESSAGE("padding: random " << random << ", in buckets " << bucketed << ", sorted " << sorted);
    BOOST_TEST(random > 0.6);
    BOOST_TEST(bucketed < 0.05);
    BOOST_TEST(sorted < bucketed);
}

BOOST_AUTO_TEST_CASE(whole_batches_of_a_bucket_stay_together_and_batches_are_mixed) {
    std::vector<std::uint32_t> lengths(640);
    std::iota(lengths.begin(), lengths.end(), 0u);
    const auto order =
        order_of(BucketSampler{lengths, 10, 1, {.bucket_batches = 64}});   // a single bucket: sorted, then shuffled
    std::size_t in_place = 0;
    for (std::size_t batch = 0; batch < 64; ++batch) {
        for (std::size_t i = 1; i < 10; ++i)
            BOOST_REQUIRE(order[10 * batch + i] == order[10 * batch] + i);
        in_place += order[10 * batch] == 10 * batch;
    }
    BOOST_TEST(in_place < 10u);
}

BOOST_AUTO_TEST_CASE(the_short_batch_is_last_and_not_the_longest_samples) {
    std::vector<std::uint32_t> lengths(103);
    std::iota(lengths.begin(), lengths.end(), 0u);
    std::ptrdiff_t longest_dropped = 0;
    for (std::size_t epoch = 0; epoch < 200; ++epoch) {
        const auto order = order_of(BucketSampler{lengths, 10, 4}, epoch);
        longest_dropped += std::ranges::count(std::span{order}.last(3), 102u);
    }
    BOOST_TEST(longest_dropped > 0);   // 3 of 103 are dropped: about 6 times
    BOOST_TEST(longest_dropped < 30u);
}

BOOST_AUTO_TEST_CASE(samples_of_one_length_meet_other_neighbours_in_every_epoch) {
    const std::vector<std::uint32_t> lengths(512, 9);
    const BucketSampler sampler{lengths, 8, 5, {.bucket_batches = 1'000}};
    const auto neighbour = [&](std::size_t epoch) {
        const auto order = order_of(sampler, epoch);
        const auto at = std::ranges::find(order, 100u) - order.begin();
        return order[static_cast<std::size_t>(at ^ 1)];
    };
    std::size_t same = 0;
    for (std::size_t epoch = 1; epoch < 50; ++epoch)
        same += neighbour(epoch) == neighbour(0);
    BOOST_TEST(same < 5u);
}

BOOST_AUTO_TEST_CASE(without_shuffling_buckets_and_batches_keep_their_order) {
    const std::vector<std::uint32_t> lengths{3, 1, 2, 1, 9, 8, 7, 7, 5};
    BOOST_TEST(order_of(BucketSampler{lengths, 2, 1, {.bucket_batches = 2, .shuffle = false}}) ==
                   (std::vector<std::uint64_t>{1, 3, 2, 0, 6, 7, 5, 4, 8}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(padding_is_what_the_longest_of_a_batch_adds_to_the_others) {
    const std::vector<std::uint32_t> lengths{4, 2, 1, 3, 5};
    const std::vector<std::uint64_t> order{0, 1, 2, 3, 4};
    BOOST_TEST(padding_share(order, lengths, 2) == 1 - 15.0 / (8 + 6 + 5));
    BOOST_TEST(padding_share(order, lengths, 1) == 0);
    BOOST_TEST(padding_share({}, lengths, 2) == 0);
    BOOST_TEST(refusal([&] { (void)padding_share(std::vector<std::uint64_t>{5}, lengths, 2); }) ==
               "padding_share: index 5 of 5 lengths");
    BOOST_TEST(refusal([&] { (void)padding_share(order, lengths, 0); }) ==
               "padding_share: batch_size must be at least 1, got 0");
}

BOOST_AUTO_TEST_CASE(sizes_of_nothing_are_refused_by_name) {
    BOOST_TEST(refusal([] { BucketSampler({}, 0, 1); }) == "batch_size must be at least 1, got 0");
    BOOST_TEST(refusal([] { BucketSampler({}, 1, 1, {.bucket_batches = 0}); }) ==
               "bucket_batches must be at least 1, got 0");
}

BOOST_AUTO_TEST_CASE(an_order_is_made_without_allocating) {
    const BucketSampler sampler{sentences(5000), 16, 3};
    std::vector<std::uint64_t> order(sampler.size());
    const std::uint64_t before = test::counted_allocations();
    test::count_this_thread(true);
    for (std::size_t epoch = 0; epoch < 3; ++epoch)
        sampler.order(epoch, order);
    test::count_this_thread(false);
    BOOST_TEST(test::counted_allocations() - before == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
