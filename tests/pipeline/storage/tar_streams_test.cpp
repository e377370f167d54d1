// Shards without random access: reading forward, what is held meanwhile, and the order that suits it.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <thread>

#include <drawpoint/pipeline/sampling/sampler.hpp>
#include "pipeline/storage/tar_help.hpp"

namespace drawpoint {
namespace {

using test::TemporaryFolder;

/// 400 samples in shards of about 50.
struct Packed {
    TemporaryFolder folder;
    std::vector<test::Bytes> files;

    Packed() {
        test::write_classes_of_noise(folder, "in", 8, 50);
        const ImageFolder images{folder.path() / "in"};
        for (const auto& [name, compression] :
             {std::pair{"none", TarCompression::none}, std::pair{"gzip", TarCompression::gzip},
              std::pair{"zstd", TarCompression::zstd}})
            (void)pack_image_folder(images, test::in_order(images.size()),
                                    {folder.path() / name, 130'000, compression});
        for (std::size_t i = 0; i < images.size(); ++i)
            files.push_back(test::file_bytes(images.path(i)));
    }
    std::string path(const char* name) const { return (folder.path() / name).string(); }
};

std::vector<std::uint64_t> order_of(const Sampler& sampler, std::size_t epoch) {
    std::vector<std::uint64_t> order(sampler.size());
    sampler.order(epoch, order);
    return order;
}

BOOST_AUTO_TEST_SUITE(tar_streams)

BOOST_AUTO_TEST_CASE(any_order_reads_the_same_as_at_random) {
    const Packed packed;
    for (const char* name : {"none", "gzip", "zstd"}) {
        const TarShards shards{packed.path(name), {.sequential = true, .held = 8, .open_streams = 2}};
        BOOST_TEST(!shards.random_access());
        for (const std::uint64_t index : order_of(RandomSampler{shards.size(), 3}, 0))
            BOOST_CHECK(test::read_of(shards, index) == packed.files[index]);
        BOOST_TEST(shards.streams_started() > shards.shard_sizes().size());   // correct, but slow, and counted
    }
}

BOOST_AUTO_TEST_CASE(drawn_by_a_shard_sampler_each_shard_is_read_once_an_epoch) {
    const Packed packed;
    for (const char* name : {"none", "gzip", "zstd"}) {
        const TarShards shards{packed.path(name), {.sequential = true, .held = 16}};
        const ShardSampler sampler{shards.shard_sizes(), 11, 16};
        const std::size_t count = shards.shard_sizes().size();
        BOOST_TEST_REQUIRE(count > 5u);
        for (std::size_t epoch = 0; epoch < 3; ++epoch) {
            for (const std::uint64_t index : order_of(sampler, epoch))
                BOOST_CHECK(test::read_of(shards, index) == packed.files[index]);
            BOOST_TEST(shards.streams_started() == count * (epoch + 1));
        }
    }
}

BOOST_AUTO_TEST_CASE(no_more_is_held_than_asked_for) {
    const Packed packed;
    const TarShards shards{packed.path("zstd"), {.held = 4}};
    (void)test::read_of(shards, 10);   // skips 0 … 9 and keeps 6 … 9
    for (const std::size_t index : {9u, 6u, 8u, 7u}) {
        BOOST_CHECK(test::read_of(shards, index) == packed.files[index]);
        BOOST_TEST(shards.streams_started() == 1u);
    }
    BOOST_CHECK(test::read_of(shards, 5) == packed.files[5]);   // was no longer kept
    BOOST_TEST(shards.streams_started() == 2u);
    BOOST_CHECK(test::read_of(shards, 3) == packed.files[3]);   // kept by the second start
    BOOST_TEST(shards.streams_started() == 2u);
}

BOOST_AUTO_TEST_CASE(what_a_cut_epoch_left_behind_does_not_crowd_out_the_next) {
    const Packed packed;
    const TarShards shards{packed.path("gzip"), {.held = 8}};
    (void)test::read_of(shards, 30);
    (void)test::read_of(shards, 0);   // the next epoch; 22 … 29 are held
    std::uint64_t started = shards.streams_started();
    for (std::size_t at = 1; at + 8 < 22; at += 8)
        for (std::size_t within = 8; within > 0; --within)
            (void)test::read_of(shards, at + within - 1);
    BOOST_TEST(shards.streams_started() == started);
}

BOOST_AUTO_TEST_CASE(many_threads_read_what_one_would) {
    const Packed packed;
    for (const char* name : {"none", "gzip", "zstd"}) {
        for (const bool random : {false, true}) {
            const TarShards shards{packed.path(name), {.sequential = !random, .open_streams = 2}};
            const ShardSampler sampler{shards.shard_sizes(), 5, 32};
            const auto order = order_of(sampler, 0);
            std::atomic<std::size_t> next{0}, wrong{0};
            std::vector<std::thread> threads;
            for (int number = 0; number < 4; ++number)
                threads.emplace_back([&] {
                    test::Bytes contents;
                    for (std::size_t at = next++; at < order.size(); at = next++) {
                        shards.read(order[at], contents);
                        wrong += contents != packed.files[order[at]];
                    }
                });
            for (std::thread& thread : threads)
                thread.join();
            BOOST_TEST(wrong == 0u);
        }
    }
}

BOOST_AUTO_TEST_CASE(no_more_streams_stay_open_than_asked_for) {
    const Packed packed;
    const auto descriptors = [] {
        return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"},
                             std::filesystem::directory_iterator{});
    };
    const auto before = descriptors();
    const TarShards shards{packed.path("gzip"), {.open_streams = 1}};
    const auto order = order_of(RandomSampler{shards.size(), 4}, 0);
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number)
        threads.emplace_back([&] {
            test::Bytes contents;
            for (std::size_t at = next++; at < order.size(); at = next++)
                shards.read(order[at], contents);
        });
    for (std::thread& thread : threads)
        thread.join();
    BOOST_TEST(descriptors() <= before + 1);
}

BOOST_AUTO_TEST_CASE(a_failed_read_is_an_error_each_time_until_the_shard_is_whole_again) {
    const Packed packed;
    const TarShards shards{packed.path("gzip"), {.held = 3}};
    const std::string path = shards.shard_path(0);
    const std::size_t last = shards.shard_sizes()[0] - 1;
    BOOST_CHECK(test::read_of(shards, last) == packed.files[last]);   // then the shard is closed
    const auto whole = test::file_bytes(path);
    packed.folder.write("gzip/shard-000000.tar.gz", test::Bytes(whole.begin(), whole.begin() + 40'000));
    test::Bytes contents;
    for (int round = 0; round < 2; ++round) {
        BOOST_CHECK_EXCEPTION(shards.read(last, contents), TarError,
                              [&](const TarError& error) { return error.file() == path && error.offset() == 40'000; });
        BOOST_CHECK(test::read_of(shards, 3) == packed.files[3]);
    }
    packed.folder.write("gzip/shard-000000.tar.gz", whole);
    shards.read(last, contents);
    BOOST_CHECK(contents == packed.files[last]);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(tar_streams)

constexpr std::size_t window = 10;
const std::vector<std::uint64_t> sizes{40, 1, 0, 73, 12, 0, 3};

BOOST_AUTO_TEST_CASE(a_shard_sampler_draws_each_index_once_and_shard_after_shard) {
    const ShardSampler sampler{sizes, 7, window};
    BOOST_TEST(sampler.size() == 129u);
    for (std::size_t epoch = 0; epoch < 20; ++epoch) {
        auto order = order_of(sampler, epoch);
        std::vector<std::size_t> shards;
        for (const std::uint64_t index : order) {
            std::size_t shard = 0;
            for (std::uint64_t end = sizes[0]; index >= end; end += sizes[++shard]) {
            }
            if (shards.empty() || shards.back() != shard)
                shards.push_back(shard);
        }
        BOOST_TEST(shards.size() == 5u);
        std::ranges::sort(order);
        BOOST_CHECK(order == test::in_order(129));
    }
}

BOOST_AUTO_TEST_CASE(a_shard_sampler_is_a_pure_function_of_seed_and_epoch) {
    const ShardSampler sampler{sizes, 7, window}, same{sizes, 7, window}, other{sizes, 8, window};
    const auto first = order_of(sampler, 3);
    BOOST_CHECK(order_of(sampler, 4) != first);
    BOOST_CHECK(order_of(sampler, 3) == first);
    BOOST_CHECK(order_of(same, 3) == first);
    BOOST_CHECK(order_of(other, 3) != first);
}

BOOST_AUTO_TEST_CASE(a_shard_sampler_keeps_within_its_window_and_uses_all_of_it) {
    const std::vector<std::uint64_t> one{1000};
    for (const std::size_t within : {std::size_t{1}, window, std::size_t{1000}, std::size_t{5000}}) {
        const ShardSampler sampler{one, 1, within};
        std::size_t farthest = 0;
        std::vector<double> mean(1000);
        for (std::size_t epoch = 0; epoch < 200; ++epoch) {
            const auto order = order_of(sampler, epoch);
            for (std::size_t place = 0; place < order.size(); ++place) {
                BOOST_TEST_REQUIRE(order[place] < place + within);
                farthest =
                    std::max<std::size_t>(farthest, order[place] + 1 - std::min<std::size_t>(place, order[place] + 1));
                mean[place] += static_cast<double>(order[place]) / 200;
            }
        }
        if (within <= window)
            BOOST_TEST(farthest == within);
        else
            BOOST_TEST(std::abs(mean[0] - 499.5) < 100);   // a whole permutation: any index may be at any position
    }
    BOOST_CHECK_THROW((ShardSampler{one, 1, 0}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(the_shards_own_order_is_uniform) {
    const std::vector<std::uint64_t> three{1, 1, 1};
    const ShardSampler sampler{three, 9, 4};
    std::vector<int> counts(27);
    for (std::size_t epoch = 0; epoch < 6000; ++epoch) {
        const auto order = order_of(sampler, epoch);
        ++counts[order[0] * 9 + order[1] * 3 + order[2]];
    }
    for (const std::size_t permutation : {5u, 7u, 11u, 15u, 19u, 21u})   // 012 021 102 120 201 210
        BOOST_TEST(std::abs(counts[permutation] - 1000) < 150);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
