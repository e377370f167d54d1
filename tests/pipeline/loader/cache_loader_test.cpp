#include <drawpoint/pipeline/loader/cache_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <map>
#include <vector>

#include <drawpoint/pipeline/loader/blocking.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::NumberedSource;

struct Loaded {
    std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    NumberedSource source{40};
    SequentialSampler sampler{40};
    DataLoader loader{runtime, source, sampler, {.batch_size = 4, .num_workers = 2, .prefetch_depth = 2}};
};

Awaitable<void> draw_pass(CacheLoader& cache, std::vector<std::size_t>& numbers) {
    auto pass = cache.epoch(0);
    for (;;) {
        auto batch = co_await pass.next();
        if (!batch)
            break;
        numbers.push_back(batch->number());
    }
}

BOOST_AUTO_TEST_SUITE(cache_loader)

BOOST_AUTO_TEST_CASE(the_first_batches_come_again_and_again_for_whole_passes) {
    Loaded loaded;
    CacheLoader cache{loaded.loader, 3};
    for (int e = 0; e < 3; ++e) {
        std::map<std::size_t, int> seen;
        std::size_t batches = 0;
        for (auto& batch : blocking(cache)) {
            BOOST_TEST(loaded.source.fault(batch, 0) == "");
            ++seen[batch.number()];
            ++batches;
        }
        BOOST_TEST(batches == loaded.loader.batches_per_epoch());
        BOOST_TEST(seen.size() == 3u);
        BOOST_TEST(seen[0] + seen[1] + seen[2] == 10);
    }
    BOOST_TEST(cache.filled());
    const std::uint64_t drawn = loaded.loader.counters().batches_taken;
    BOOST_TEST(drawn == 3u);
}

BOOST_AUTO_TEST_CASE(a_coroutine_draws_the_same) {
    Loaded loaded;
    CacheLoader cache{loaded.loader, 2};
    std::vector<std::size_t> numbers;
    run(loaded.runtime, draw_pass(cache, numbers));
    run(loaded.runtime, draw_pass(cache, numbers));
    BOOST_TEST(numbers.size() == 20u);
    for (std::size_t i = 0; i < numbers.size(); ++i)
        BOOST_TEST(numbers[i] == i % 2);
}

BOOST_AUTO_TEST_CASE(more_than_there_are_is_all_there_are) {
    Loaded loaded;
    CacheLoader cache{loaded.loader, 50};
    std::size_t batches = 0;
    for (auto& batch : blocking(cache))
        BOOST_TEST(batch.number() == batches++);
    BOOST_TEST(batches == 10u);
    BOOST_TEST(cache.filled());
}

BOOST_AUTO_TEST_CASE(the_loader_is_free_for_its_own_passes_once_the_cache_is_filled) {
    Loaded loaded;
    CacheLoader cache{loaded.loader, 2};
    for (auto& batch : blocking(cache))
        if (batch.number() == 1)
            break;
    std::size_t batches = 0;
    for (auto& batch : blocking(loaded.loader, 1))
        batches += batch.epoch() == 1;
    BOOST_TEST(batches == 10u);
}

BOOST_AUTO_TEST_CASE(holding_every_cached_batch_throws) {
    Loaded loaded;
    CacheLoader cache{loaded.loader, 2};
    auto pass = cache.epoch(0);
    auto first = pass.next_blocking();
    auto second = pass.next_blocking();
    BOOST_CHECK_THROW((void)pass.next_blocking(), std::logic_error);
    first.reset();
    BOOST_TEST(pass.next_blocking()->number() == 0u);
    BOOST_TEST(second->number() == 1u);
}

BOOST_AUTO_TEST_CASE(a_refused_draw_does_not_use_up_a_turn_of_the_pass) {
    Loaded loaded;
    CacheLoader cache{loaded.loader, 1};
    auto pass = cache.epoch(0);
    std::size_t drawn = 0;
    {
        const auto held = pass.next_blocking();
        BOOST_CHECK_THROW((void)pass.next_blocking(), std::logic_error);
        ++drawn;
    }
    while (pass.next_blocking())
        ++drawn;
    BOOST_TEST(drawn == loaded.loader.batches_per_epoch());
}

BOOST_AUTO_TEST_CASE(a_cached_batch_outlives_the_cache) {
    Loaded loaded;
    std::optional<Batch> kept;
    {
        CacheLoader cache{loaded.loader, 2};
        auto pass = cache.epoch(0);
        kept = pass.next_blocking();
    }
    BOOST_TEST(loaded.source.fault(*kept, 0) == "");
}

BOOST_AUTO_TEST_CASE(a_source_whose_batches_fail_throws_their_errors_and_ends) {
    Loaded loaded;
    loaded.source.fails = [](std::uint64_t index) { return index >= 4; };
    CacheLoader cache{loaded.loader, 2};
    auto pass = cache.epoch(0);
    BOOST_TEST(pass.next_blocking()->number() == 0u);
    std::size_t failed = 0;
    for (int i = 1; i < 10; ++i)
        try {
            (void)pass.next_blocking();
        } catch (const SampleError&) {
            ++failed;
        }
    BOOST_TEST(failed == 9u);
    auto next = cache.epoch(1);
    for (int i = 0; i < 10; ++i)
        BOOST_TEST(next.next_blocking()->number() == 0u);
}

BOOST_AUTO_TEST_CASE(a_cache_of_no_batches_is_refused) {
    Loaded loaded;
    BOOST_CHECK_THROW((CacheLoader{loaded.loader, 0}), std::invalid_argument);
    BOOST_CHECK_THROW((CacheLoader{loaded.loader, 57}), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
