#include <drawpoint/pipeline/loader/blocking.hpp>

#include <boost/test/unit_test.hpp>

#include <iterator>
#include <thread>
#include <vector>

#include <drawpoint/pipeline/loader/cache_loader.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::NumberedSource;
using Range = decltype(blocking(std::declval<DataLoader&>()));

static_assert(std::input_iterator<Range::Iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, Range::Iterator>);
template <class L>
concept Blockable = requires(L&& loader) { blocking(std::forward<L>(loader)); };
static_assert(Blockable<DataLoader&> && Blockable<CacheLoader&> && !Blockable<DataLoader> && !Blockable<CacheLoader>);

struct Loaded {
    std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    NumberedSource source{20};
    SequentialSampler sampler{20};
};

BOOST_AUTO_TEST_SUITE(blocking)

BOOST_AUTO_TEST_CASE(a_range_over_a_loader_is_one_pass) {
    for (const std::size_t workers : {0u, 1u, 3u}) {
        Loaded loaded;
        DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, {.batch_size = 3, .num_workers = workers}};
        for (std::size_t e = 0; e < 3; ++e) {
            std::vector<std::uint64_t> indices;
            for (auto& batch : drawpoint::blocking(loader, e, {.next_epoch = e < 2})) {
                BOOST_TEST(batch.epoch() == e);
                BOOST_TEST(loaded.source.fault(batch, 0) == "");
                indices.insert(indices.end(), batch.indices().begin(), batch.indices().end());
            }
            BOOST_REQUIRE(indices.size() == 20u);
            for (std::uint64_t i = 0; i < 20; ++i)
                BOOST_TEST(indices[i] == i);
        }
    }
}

BOOST_AUTO_TEST_CASE(leaving_a_range_early_leaves_the_loader_usable) {
    Loaded loaded;
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, {.batch_size = 3, .num_workers = 2}};
    for (auto& batch : drawpoint::blocking(loader))
        if (batch.number() == 2)
            break;
    std::size_t batches = 0;
    for (auto& batch : drawpoint::blocking(loader))
        BOOST_TEST(batch.number() == batches++);
    BOOST_TEST(batches == 7u);
}

BOOST_AUTO_TEST_CASE(a_batch_moved_out_of_the_range_stays_with_its_new_owner) {
    Loaded loaded;
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, {.batch_size = 3, .prefetch_depth = 2}};
    std::vector<Batch> kept;
    for (auto& batch : drawpoint::blocking(loader))
        if (batch.number() == 1)
            kept.push_back(std::move(batch));
    BOOST_TEST(kept.at(0).number() == 1u);
    BOOST_TEST(loaded.source.fault(kept[0], 0) == "");
}

BOOST_AUTO_TEST_CASE(a_blocked_thread_wakes_when_its_batch_is_there) {
    Loaded loaded;
    std::atomic<bool> go{false};
    loaded.source.before_fill = [&go](std::uint64_t) { go.wait(false); };
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, {.batch_size = 5, .num_workers = 2}};
    auto pass = loader.epoch(0);
    std::size_t batches = 0;
    std::thread drawing{[&] {
        while (pass.next_blocking())
            ++batches;
    }};
    while (loaded.source.fills == 0)
        std::this_thread::yield();
    go = true;
    go.notify_all();
    drawing.join();
    BOOST_TEST(batches == 4u);
}

BOOST_AUTO_TEST_CASE(a_blocked_thread_wakes_when_another_stops_the_loader) {
    Loaded loaded;
    std::atomic<bool> go{false};
    loaded.source.before_fill = [&go](std::uint64_t) { go.wait(false); };
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, {.batch_size = 5, .num_workers = 1}};
    auto pass = loader.epoch(0);
    bool aborted = false;
    std::thread drawing{[&] {
        try {
            (void)pass.next_blocking();
        } catch (const std::system_error&) {
            aborted = true;
        }
    }};
    loader.request_stop();
    go = true;
    go.notify_all();
    drawing.join();
    BOOST_TEST(aborted);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
