#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <drawpoint/pipeline/loader/blocking.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;
using test::says;

static_assert(BatchSource<DataLoader::Pass> && EpochSource<DataLoader> && StampedBatch<Batch> && SizedBatch<Batch>);
static_assert(!std::is_copy_constructible_v<Batch> && std::is_nothrow_move_constructible_v<Batch> &&
              sizeof(Batch) == 16);
static_assert(!std::is_constructible_v<DataLoader, Runtime&, const NumberedSource&, SequentialSampler, LoaderOptions>);
static_assert(!std::is_constructible_v<DataLoader, Runtime&, NumberedSource, const SequentialSampler&, LoaderOptions>);

std::size_t expected_batches(std::size_t n, std::size_t batch, bool drop_last) {
    if (drop_last)
        return n == 0 ? 0 : std::max<std::size_t>(n / batch, 1);
    return (n + batch - 1) / batch;
}

Awaitable<void> draw_all(DataLoader& loader, std::size_t epochs, std::uint64_t seed, const NumberedSource& source,
                         std::vector<std::uint64_t>& indices, std::string& fault) {
    for (std::size_t e = 0; e < epochs; ++e) {
        EpochOptions options{.next_epoch = e + 1 < epochs};
        auto pass = loader.epoch(e, options);
        for (std::size_t number = 0;; ++number) {
            auto batch = co_await pass.next();
            if (!batch)
                break;
            if (batch->number() != number || batch->epoch() != e)
                fault = "batch " + std::to_string(batch->number()) + " of epoch " + std::to_string(batch->epoch());
            if (const std::string wrong = source.fault(*batch, seed); !wrong.empty())
                fault = wrong;
            indices.insert(indices.end(), batch->indices().begin(), batch->indices().end());
        }
        auto after = co_await pass.next();
        if (after)
            fault = "a batch after the end";
    }
}

BOOST_AUTO_TEST_SUITE(data_loader)

BOOST_AUTO_TEST_CASE(every_index_comes_once_per_epoch_in_the_samplers_order) {
    Bench bench;
    for (const WorkerThreads kind : {WorkerThreads::threads, WorkerThreads::arena}) {
        Bench other{false, kind};
        for (const std::size_t n : {0u, 1u, 3u, 8u, 37u, 64u})
            for (const std::size_t batch : {1u, 4u, 8u, 100u})
                for (const std::size_t workers : {0u, 1u, 2u, 4u})
                    for (const bool drop_last : {false, true}) {
                        const std::size_t depth = 1 + (n + workers) % 5;
                        const NumberedSource source{n};
                        const RandomSampler sampler{n, 3};
                        DataLoader loader{other.runtime,
                                          source,
                                          sampler,
                                          {.batch_size = batch,
                                           .num_workers = workers,
                                           .prefetch_depth = depth,
                                           .seed = 9,
                                           .drop_last = drop_last}};
                        std::vector<std::uint64_t> indices, expected(n);
                        std::string fault;
                        run(other.runtime, draw_all(loader, 2, 9, source, indices, fault));
                        BOOST_TEST(fault == "");
                        const std::size_t batches = expected_batches(n, batch, drop_last);
                        BOOST_TEST(loader.batches_per_epoch() == batches);
                        const std::size_t drawn = std::min(n, batches * batch);
                        BOOST_REQUIRE(indices.size() == 2 * drawn);
                        for (std::size_t e = 0; e < 2; ++e) {
                            sampler.order(e, expected);
                            for (std::size_t i = 0; i < drawn; ++i)
                                BOOST_TEST(indices[e * drawn + i] == expected[i]);
                        }
                        BOOST_TEST(loader.counters().batches_taken == 2 * batches);
                        BOOST_TEST(loader.counters().samples_taken == 2 * drawn);
                        BOOST_TEST(loader.counters().batches_abandoned == 0u);
                        BOOST_TEST(loader.counters().handler_fallbacks == 0u);
                    }
    }
}

BOOST_AUTO_TEST_CASE(the_digest_does_not_depend_on_workers_depth_or_the_pool) {
    std::map<std::uint64_t, std::set<std::string>> digests;
    for (const WorkerThreads kind : {WorkerThreads::threads, WorkerThreads::arena})
        for (const std::size_t workers : {0u, 1u, 2u, 3u})
            for (const std::size_t depth : {1u, 2u, 7u, 55u})
                for (const std::uint64_t seed : {1u, 2u}) {
                    Bench bench{false, kind};
                    const NumberedSource source{101};
                    const RandomSampler sampler{101, seed};
                    DataLoader loader{bench.runtime,
                                      source,
                                      sampler,
                                      {.batch_size = 8, .num_workers = workers, .prefetch_depth = depth, .seed = seed}};
                    loader.enable_digest();
                    std::vector<std::uint64_t> indices;
                    std::string fault;
                    run(bench.runtime, draw_all(loader, 3, seed, source, indices, fault));
                    digests[seed].insert(loader.digest());
                    BOOST_TEST(loader.digest().size() == 16u);
                }
    BOOST_TEST(digests[1].size() == 1u);
    BOOST_TEST(digests[2].size() == 1u);
    BOOST_TEST(*digests[1].begin() != *digests[2].begin());
}

BOOST_AUTO_TEST_CASE(wrong_options_are_refused_by_name_and_value) {
    Bench bench;
    const NumberedSource source{8};
    const SequentialSampler sampler{8};
    const auto make = [&](const LoaderOptions& options) { DataLoader loader{bench.runtime, source, sampler, options}; };
    BOOST_CHECK_EXCEPTION(make({.prefetch_depth = 0}), std::invalid_argument,
                          says("prefetch_depth must be at least 1, got 0"));
    BOOST_CHECK_EXCEPTION(make({.prefetch_depth = 56}), std::invalid_argument,
                          says("prefetch_depth must be at most 55, got 56"));
    BOOST_CHECK_EXCEPTION(make({.batch_size = 0}), std::invalid_argument, says("batch_size must be at least 1, got 0"));
    BOOST_CHECK_EXCEPTION(make({.batch_size = (1u << 20) + 1}), std::invalid_argument,
                          says("batch_size must be at most 1048576, got 1048577"));
    BOOST_CHECK_EXCEPTION(make({.num_workers = 257}), std::invalid_argument,
                          says("num_workers must be at most 256, got 257"));
    BOOST_CHECK_EXCEPTION(make({.read_concurrency = 4097}), std::invalid_argument,
                          says("read_concurrency must be at most 4096, got 4097"));
    BOOST_CHECK_EXCEPTION(make({.read_deadline = std::chrono::nanoseconds{-1}}), std::invalid_argument,
                          says("read_deadline must be at least 0, got -1 ns"));
    BOOST_CHECK_EXCEPTION(make({.read_deadline = std::chrono::hours{24} + std::chrono::nanoseconds{1}}),
                          std::invalid_argument, says("read_deadline must be at most 24 h, got 86400000000001 ns"));
    BOOST_CHECK_EXCEPTION(make({.read_retries = 101}), std::invalid_argument,
                          says("read_retries must be at most 100, got 101"));
    BOOST_CHECK_EXCEPTION(make({.memory_budget = 1}), std::invalid_argument, [](const std::invalid_argument& error) {
        return std::string_view{error.what()}.starts_with("memory_budget = 1 is ");
    });
    Runtime narrow{{.max_threads = 2}, *bench.recorder};
    BOOST_CHECK_EXCEPTION((DataLoader{narrow, source, sampler, {.num_workers = 3}}), std::invalid_argument,
                          says("num_workers must be at most max_threads = 2, got 3"));
    BOOST_CHECK_EXCEPTION((Runtime{{.max_threads = 257}, *bench.recorder}), std::invalid_argument,
                          says("max_threads must be at most 256, got 257"));
}

BOOST_AUTO_TEST_CASE(two_loaders_of_one_runtime_do_not_keep_each_other_from_running) {
    for (const WorkerThreads kind : {WorkerThreads::threads, WorkerThreads::arena}) {
        Bench bench{false, kind};
        const NumberedSource train{64}, valid{64};
        const SequentialSampler sampler{64};
        DataLoader first{bench.runtime, train, sampler, {.batch_size = 2, .num_workers = 3, .prefetch_depth = 2}};
        DataLoader second{bench.runtime, valid, sampler, {.batch_size = 2, .num_workers = 3, .prefetch_depth = 2}};
        auto kept = first.epoch(0);   // its workers fill the window and then sleep
        (void)kept.next_blocking();
        for (std::size_t e = 0; e < 3; ++e) {
            std::size_t batches = 0;
            auto pass = second.epoch(e);
            while (pass.next_blocking())
                ++batches;
            BOOST_TEST(batches == 32u);
        }
        std::size_t rest = 0;
        while (kept.next_blocking())
            ++rest;
        BOOST_TEST(rest == 31u);
    }
}

BOOST_AUTO_TEST_CASE(a_scratch_is_made_once_per_worker) {
    Bench bench;
    const NumberedSource source{100};
    const SequentialSampler sampler{100};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 5, .num_workers = 3}};
    for (auto& batch : blocking(loader))
        BOOST_TEST(batch.size() == 5u);
    BOOST_TEST(source.scratches >= 1u);
    BOOST_TEST(source.scratches <= 3u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
