#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;

/// Waits until the batch is ready.
ReadyBatch wait_for(const DataLoader::Pass& pass, std::size_t ahead) {
    std::optional<ReadyBatch> ready;
    while (!(ready = pass.peek(ahead)))
        std::this_thread::yield();
    return *ready;
}

/// What is wrong with a batch of samples of one word; empty if nothing is.
std::string fault(const ReadyBatch& batch, std::uint64_t epoch) {
    if (batch.data.size() != batch.size * 8 || batch.targets.size() != batch.size ||
        batch.indices.size() != batch.size || !batch.parts.empty())
        return "sizes";
    for (std::size_t i = 0; i < batch.size; ++i) {
        std::int64_t word = 0;
        std::memcpy(&word, batch.data.data() + i * 8, 8);
        const std::uint64_t index = batch.indices[i];
        if (word != NumberedSource::word(0, epoch, index, 0) || batch.targets[i] != NumberedSource::target(index))
            return "sample " + std::to_string(index);
    }
    return {};
}

BOOST_AUTO_TEST_SUITE(peek)

BOOST_AUTO_TEST_CASE(what_is_looked_at_is_what_is_drawn_and_looking_draws_nothing) {
    for (const OrderRule order : {OrderRule::in_order(), OrderRule::out_of_order()})
        for (const std::size_t workers : {1u, 3u}) {
            Bench bench{true};
            const NumberedSource source{60, 1};
            const RandomSampler sampler{60, 3};
            DataLoader loader{bench.runtime,
                              source,
                              sampler,
                              {.batch_size = 4, .num_workers = workers, .prefetch_depth = 3, .order = order}};
            auto pass = loader.epoch(0);
            for (std::size_t drawn = 0; drawn < 15; ++drawn) {
                if (drawn == 0)
                    BOOST_TEST(pass.next_blocking()->size() == 4u);   // the order is computed by the first draw
                const std::size_t left = 14 - drawn;
                if (left == 0)
                    break;
                const std::size_t most = std::min<std::size_t>(left, 3);
                const ReadyBatch last = wait_for(pass, most - 1);
                const ReadyBatch next = *pass.peek();
                BOOST_TEST(fault(last, 0) == "");
                BOOST_TEST(fault(next, 0) == "");
                if (most == left)
                    BOOST_TEST(!pass.peek(most).has_value());
                BOOST_TEST(loader.counters().batches_taken == drawn + 1);
                BOOST_TEST(pass.drawn() == drawn + 1);
                const std::optional<Batch> batch = pass.try_next();
                BOOST_REQUIRE(batch.has_value());
                BOOST_TEST(batch->number() == next.number);
                BOOST_TEST(&batch->memory() == next.memory);
                BOOST_TEST(batch->data().data() == next.data.data());
                if (most > 1)
                    BOOST_TEST(pass.peek(most - 2)->number == last.number);
            }
            BOOST_TEST(!pass.try_next().has_value());
            BOOST_TEST(!pass.next_blocking().has_value());
            BOOST_TEST(bench.recorder->ledger().batches.size() == 15u);
        }
}

BOOST_AUTO_TEST_CASE(a_draw_that_has_something_to_tell_is_not_passed_over) {
    for (const OnError on_error : {OnError::raise, OnError::skip}) {
        Bench bench;
        NumberedSource source{20, 1};
        source.fails = [](std::uint64_t index) { return index / 4 == 2; };   // all samples of a batch
        const SequentialSampler sampler{20};
        DataLoader loader{bench.runtime,
                          source,
                          sampler,
                          {.batch_size = 4, .num_workers = 2, .prefetch_depth = 5, .on_error = on_error}};
        auto pass = loader.epoch(0);
        BOOST_TEST(wait_for(pass, 1).number == 1u);
        while (source.fills < 20)
            std::this_thread::yield();
        BOOST_TEST(pass.try_next()->number() == 0u);
        BOOST_TEST(pass.try_next()->number() == 1u);
        BOOST_TEST(!pass.peek().has_value());
        BOOST_TEST(!pass.peek(1).has_value());   // although it is ready
        BOOST_TEST(!pass.try_next().has_value());
        if (on_error == OnError::raise)
            BOOST_CHECK_THROW((void)pass.next_blocking(), SampleError);
        else
            BOOST_TEST(pass.next_blocking()->number() == 3u);
        const std::size_t next = on_error == OnError::raise ? 3 : 4;
        BOOST_TEST(wait_for(pass, 0).number == next);
        BOOST_TEST(pass.try_next()->number() == next);
    }
}

BOOST_AUTO_TEST_CASE(batches_of_the_next_pass_are_not_seen) {
    Bench bench;
    NumberedSource source{8, 1};
    const SequentialSampler sampler{8};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 1, .prefetch_depth = 4}};
    auto pass = loader.epoch(0, {.next_epoch = true});
    while (source.fills < 16)   // the next pass is prefetched, too
        std::this_thread::yield();
    BOOST_TEST(wait_for(pass, 1).number == 1u);
    BOOST_TEST(!pass.peek(2).has_value());
    BOOST_TEST(pass.try_next()->number() == 0u);
    BOOST_TEST(pass.try_next()->number() == 1u);
    BOOST_TEST(!pass.peek().has_value());
    BOOST_TEST(!pass.try_next().has_value());
    auto second = loader.epoch(1);
    BOOST_TEST(!pass.peek().has_value());   // used up
    BOOST_TEST(fault(wait_for(second, 1), 1) == "");
}

BOOST_AUTO_TEST_CASE(without_workers_or_after_a_stop_nothing_is_ready) {
    Bench bench;
    const NumberedSource source{8, 1};
    const SequentialSampler sampler{8};
    DataLoader alone{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 0}};
    auto made = alone.epoch(0);
    BOOST_TEST(!made.peek().has_value());
    BOOST_TEST(!made.try_next().has_value());
    BOOST_TEST(made.next_blocking()->number() == 0u);
    DataLoader stopped{bench.runtime, source, sampler, {.batch_size = 4}};
    auto pass = stopped.epoch(0);
    (void)wait_for(pass, 0);
    stopped.request_stop();
    BOOST_TEST(!pass.peek().has_value());
    BOOST_TEST(!pass.try_next().has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
