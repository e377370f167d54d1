#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;

BOOST_AUTO_TEST_SUITE(data_loader_passes)

BOOST_AUTO_TEST_CASE(a_pass_may_prefetch_into_the_next_epoch_only_when_told) {
    for (const bool told : {false, true}) {
        Bench bench;
        const NumberedSource source{16};
        const RandomSampler sampler{16, 1};
        DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 1, .prefetch_depth = 3}};
        auto pass = loader.epoch(0, {.next_epoch = told});
        for (int i = 0; i < 4; ++i)
            (void)pass.next_blocking();
        if (told)
            while (source.fills < 32)   // four slots: all batches of the next epoch
                std::this_thread::yield();
        BOOST_TEST(!pass.next_blocking().has_value());
        BOOST_TEST(source.fills == (told ? 32u : 16u));
        std::vector<std::uint64_t> expected(16), got;
        sampler.order(1, expected);
        auto next = loader.epoch(1);
        while (auto batch = next.next_blocking()) {
            BOOST_TEST(source.fault(*batch, 0) == "");
            got.insert(got.end(), batch->indices().begin(), batch->indices().end());
        }
        BOOST_CHECK(got == expected);
        BOOST_TEST(source.fills == 32u);
        BOOST_TEST(loader.counters().batches_abandoned == 0u);
    }
}

BOOST_AUTO_TEST_CASE(what_was_prefetched_for_another_epoch_is_abandoned) {
    Bench bench{true};
    const NumberedSource source{16};
    const RandomSampler sampler{16, 1};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 1, .prefetch_depth = 3}};
    {
        auto pass = loader.epoch(0, {.next_epoch = true});
        while (pass.next_blocking())
            ;
        while (source.fills < 32)
            std::this_thread::yield();
    }
    auto pass = loader.epoch(5);
    std::size_t batches = 0;
    while (auto batch = pass.next_blocking()) {
        BOOST_TEST(batch->epoch() == 5u);
        BOOST_TEST(batch->number() == batches++);
    }
    BOOST_TEST(batches == 4u);
    BOOST_TEST(loader.counters().batches_abandoned == 4u);
    std::size_t abandoned = 0;
    for (const BatchRow& row : bench.recorder->ledger().batches)
        abandoned += row.status == BatchStatus::abandoned && row.epoch == 1;
    BOOST_TEST(abandoned == 4u);
}

BOOST_AUTO_TEST_CASE(a_pass_destroyed_early_abandons_its_batches_and_the_next_starts_clean) {
    for (const std::size_t workers : {0u, 1u, 2u})
        for (std::size_t drawn = 0; drawn < 8; ++drawn) {
            Bench bench{true};
            const NumberedSource source{32};
            const RandomSampler sampler{32, 1};
            DataLoader loader{
                bench.runtime, source, sampler, {.batch_size = 4, .num_workers = workers, .prefetch_depth = 3}};
            {
                auto pass = loader.epoch(0, {.next_epoch = true});
                for (std::size_t i = 0; i < drawn; ++i)
                    (void)pass.next_blocking();
            }
            std::vector<std::uint64_t> expected(32), got;
            sampler.order(0, expected);
            auto pass = loader.epoch(0);
            while (auto batch = pass.next_blocking()) {
                BOOST_TEST(source.fault(*batch, 0) == "");
                got.insert(got.end(), batch->indices().begin(), batch->indices().end());
            }
            BOOST_CHECK(got == expected);
            const LoaderCounters counters = loader.counters();
            BOOST_TEST(counters.batches_taken == drawn + 8);
            const Ledger ledger = bench.recorder->ledger();
            BOOST_TEST(ledger.batches.size() == counters.batches_taken + counters.batches_abandoned);
            if (workers == 0)
                BOOST_TEST(counters.batches_abandoned == 0u);
            else if (drawn != 0 && drawn < 4)   // the number that have slots at the same time
                BOOST_TEST(counters.batches_abandoned > 0u);
        }
}

BOOST_AUTO_TEST_CASE(a_used_up_pass_may_be_destroyed_while_the_next_is_drawn) {
    Bench bench;
    const NumberedSource source{8};
    const SequentialSampler sampler{8};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4}};
    std::optional<DataLoader::Pass> first{loader.epoch(0)};
    while (first->next_blocking())
        ;
    auto second = loader.epoch(0);
    BOOST_TEST(second.next_blocking().has_value());
    BOOST_TEST(!first->next_blocking().has_value());
    first.reset();
    BOOST_TEST(second.next_blocking().has_value());
    BOOST_TEST(!second.next_blocking().has_value());
}

BOOST_AUTO_TEST_CASE(a_second_pass_beside_one_that_is_not_used_up_is_refused) {
    Bench bench;
    const NumberedSource source{8};
    const SequentialSampler sampler{8};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4}};
    auto pass = loader.epoch(0);
    BOOST_CHECK_THROW((void)loader.epoch(1), std::logic_error);
    BOOST_TEST(pass.next_blocking().has_value());
}

DRAWPOINT_CORO_TEST_CASE(an_exhausted_pass_yields_nullopt_for_ever) {
    NumberedSource source{6};
    SequentialSampler sampler{6};
    LoaderOptions options{.batch_size = 4, .num_workers = 1};
    DataLoader loader{runtime, source, sampler, options};
    auto pass = loader.epoch(0);
    auto first = co_await pass.next();
    auto second = co_await pass.next();
    BOOST_TEST(first->size() == 4u);
    BOOST_TEST(second->size() == 2u);
    for (int i = 0; i < 3; ++i) {
        auto none = co_await pass.next();
        BOOST_TEST(!none.has_value());
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
