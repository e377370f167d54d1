#include <drawpoint/pipeline/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <asio/error.hpp>

#include <drawpoint/pipeline/blocking.hpp>

#include "pipeline/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::NumberedSource;

static_assert(BatchSource<DataLoader::Pass> && EpochSource<DataLoader> && StampedBatch<Batch> && SizedBatch<Batch>);
static_assert(!std::is_copy_constructible_v<Batch> && std::is_nothrow_move_constructible_v<Batch> &&
              sizeof(Batch) == 16);
static_assert(!std::is_constructible_v<DataLoader, Runtime&, const NumberedSource&, SequentialSampler, LoaderOptions>);
static_assert(!std::is_constructible_v<DataLoader, Runtime&, NumberedSource, const SequentialSampler&, LoaderOptions>);

struct Bench {
    std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime;
    explicit Bench(bool record = false, WorkerThreads workers = WorkerThreads::arena)
        : runtime{{.workers = workers, .record = record}, *recorder} {}
};

std::size_t expected_batches(std::size_t n, std::size_t batch, bool drop_last) {
    if (drop_last)
        return n == 0 ? 0 : std::max<std::size_t>(n / batch, 1);
    return (n + batch - 1) / batch;
}

bool aborted(const std::system_error& error) { return error.code() == asio::error::operation_aborted; }
auto says(std::string words) {
    return [words = std::move(words)](const std::exception& error) {
        if (std::string{error.what()} == words)
            return true;
        BOOST_TEST_MESSAGE("it says: " << error.what());
        return false;
    };
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
    BOOST_CHECK_EXCEPTION(make({.order = BatchOrder::bounded, .max_overtakes = 0}), std::invalid_argument,
                          says("max_overtakes must be at least 1, got 0"));
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

BOOST_AUTO_TEST_CASE(a_failed_sample_is_thrown_by_its_batch_and_the_next_batches_come) {
    for (const std::size_t workers : {0u, 1u, 3u})
        for (std::uint64_t wrong = 0; wrong < 12; ++wrong) {
            Bench bench{true};
            NumberedSource source{12};
            source.fails = [wrong](std::uint64_t index) { return index == wrong; };
            const SequentialSampler sampler{12};
            DataLoader loader{bench.runtime, source, sampler, {.batch_size = 3, .num_workers = workers}};
            auto pass = loader.epoch(0);
            for (std::uint64_t number = 0; number < 4; ++number) {
                if (number == wrong / 3) {
                    const std::string name = std::to_string(wrong);
                    try {
                        (void)pass.next_blocking();
                        BOOST_ERROR("no exception");
                    } catch (const SampleError& error) {
                        BOOST_TEST(error.what() ==
                                   "sample " + name + " (numbers/" + name + "): count: no sample " + name);
                        BOOST_TEST(error.index() == wrong);
                        BOOST_TEST(error.stage() == "count");
                        BOOST_CHECK_THROW(std::rethrow_exception(error.cause()), std::runtime_error);
                    }
                } else {
                    const auto batch = pass.next_blocking();
                    BOOST_REQUIRE(batch.has_value());
                    BOOST_TEST(batch->number() == number);
                }
            }
            BOOST_TEST(!pass.next_blocking().has_value());
            const Ledger ledger = bench.recorder->ledger();
            BOOST_REQUIRE(ledger.failures.size() == 1u);
            BOOST_TEST(ledger.failures[0].index == wrong);
            BOOST_TEST(ledger.failures[0].batch == wrong / 3);
            BOOST_REQUIRE(ledger.batches.size() == 4u);
            for (const BatchRow& row : ledger.batches)
                BOOST_CHECK(row.status == (row.batch == wrong / 3 ? BatchStatus::failed : BatchStatus::taken));
        }
}

BOOST_AUTO_TEST_CASE(of_several_failures_in_a_batch_the_lowest_index_is_thrown_and_all_are_recorded) {
    for (const std::size_t workers : {0u, 2u}) {
        Bench bench{true};
        NumberedSource source{8};
        source.fails = [](std::uint64_t index) { return index % 2 == 1; };
        const FixedSampler sampler{{7, 2, 5, 0, 3, 4, 6, 1}};
        DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = workers}};
        auto pass = loader.epoch(0);
        const auto index_is = [](std::uint64_t index) {
            return [index](const SampleError& e) { return e.index() == index; };
        };
        BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError, index_is(5));
        BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError, index_is(1));
        BOOST_TEST(!pass.next_blocking().has_value());
        BOOST_TEST(bench.recorder->ledger().failures.size() == 4u);
    }
}

BOOST_AUTO_TEST_CASE(an_index_outside_the_data_set_is_a_failed_sample) {
    Bench bench;
    const NumberedSource source{4};
    const FixedSampler sampler{{0, 4}};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 2}};
    auto pass = loader.epoch(0);
    BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError,
                          says("sample 4: sampler: index 4 of a data set of 4"));
}

BOOST_AUTO_TEST_CASE(holding_every_batch_throws_naming_the_depth_and_giving_one_back_goes_on) {
    for (const std::size_t workers : {0u, 2u}) {
        Bench bench;
        const NumberedSource source{10};
        const SequentialSampler sampler{10};
        DataLoader loader{bench.runtime, source, sampler, {.num_workers = workers, .prefetch_depth = 2}};
        auto pass = loader.epoch(0);
        std::vector<Batch> held;
        for (int i = 0; i < 3; ++i)
            held.push_back(std::move(*pass.next_blocking()));
        BOOST_CHECK_EXCEPTION(
            (void)pass.next_blocking(), std::logic_error,
            says("next(): all prefetch_depth + 1 = 3 batches are held; give one back or raise prefetch_depth"));
        held.erase(held.begin() + 1);
        for (std::size_t number = 3; number < 10; ++number) {
            const auto batch = pass.next_blocking();
            BOOST_TEST(batch->number() == number);
        }
        BOOST_TEST(source.fault(held[0], 0) == "");
        BOOST_TEST(source.fault(held[1], 0) == "");
        BOOST_TEST(held[1].number() == 2u);
    }
}

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
            while (source.fills < 32)   // four slots: all of the next epoch
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
            else if (drawn < 4)   // as many as have a slot at once
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

BOOST_AUTO_TEST_CASE(stopped_ends_every_later_draw_with_operation_aborted) {
    for (const std::size_t workers : {0u, 2u}) {
        Bench bench;
        const NumberedSource source{8};
        const SequentialSampler sampler{8};
        DataLoader loader{bench.runtime, source, sampler, {.batch_size = 2, .num_workers = workers}};
        auto pass = loader.epoch(0);
        (void)pass.next_blocking();
        loader.request_stop();
        loader.request_stop();
        BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), std::system_error, aborted);
        BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), std::system_error, aborted);
        auto body = [&pass]() -> Awaitable<void> { auto batch = co_await pass.next(); };
        BOOST_CHECK_EXCEPTION(run(bench.runtime, body()), std::system_error, aborted);
    }
}

BOOST_AUTO_TEST_CASE(a_suspended_draw_ends_with_operation_aborted_when_its_loader_is_destroyed) {
    Bench bench;
    std::atomic<bool> go{false};
    NumberedSource source{8};
    source.before_fill = [&go](std::uint64_t) {
        while (!go)
            std::this_thread::yield();
    };
    const SequentialSampler sampler{8};
    auto loader = std::make_unique<DataLoader>(bench.runtime, source, sampler, LoaderOptions{.batch_size = 2});
    std::exception_ptr error;
    auto body = [&]() -> Awaitable<void> {
        auto pass = loader->epoch(0);
        auto batch = co_await pass.next();
    };
    auto done = [&error](std::exception_ptr thrown) { error = thrown; };
    asio::co_spawn(bench.runtime.context(), body(), done);
    bench.runtime.context().run_one();   // up to the suspension
    go = true;
    loader.reset();
    bench.runtime.context().run();
    BOOST_REQUIRE(error);
    BOOST_CHECK_EXCEPTION(std::rethrow_exception(error), std::system_error, aborted);
}

BOOST_AUTO_TEST_CASE(a_batch_outlives_its_pass_and_its_loader) {
    for (const std::size_t workers : {0u, 2u}) {
        Bench bench;
        const NumberedSource source{40};
        std::vector<Batch> kept;
        {
            const SequentialSampler sampler{40};
            DataLoader loader{
                bench.runtime, source, sampler, {.batch_size = 2, .num_workers = workers, .prefetch_depth = 3}};
            auto pass = loader.epoch(0);
            for (int i = 0; i < 3; ++i)
                kept.push_back(std::move(*pass.next_blocking()));
        }
        for (const Batch& batch : kept)
            BOOST_TEST(source.fault(batch, 0) == "");
        std::thread other{[batch = std::move(kept[1])] {}};
        kept.erase(kept.begin() + 1);
        kept.pop_back();
        other.join();
        BOOST_TEST(source.fault(kept[0], 0) == "");
    }
}

BOOST_AUTO_TEST_CASE(two_loaders_of_one_runtime_do_not_keep_each_other_from_running) {
    for (const WorkerThreads kind : {WorkerThreads::threads, WorkerThreads::arena}) {
        Bench bench{false, kind};
        const NumberedSource train{64}, valid{64};
        const SequentialSampler sampler{64};
        DataLoader first{bench.runtime, train, sampler, {.batch_size = 2, .num_workers = 3, .prefetch_depth = 2}};
        DataLoader second{bench.runtime, valid, sampler, {.batch_size = 2, .num_workers = 3, .prefetch_depth = 2}};
        auto kept = first.epoch(0);   // its workers fill the window and sleep
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

BOOST_AUTO_TEST_CASE(a_recorded_pass_has_a_row_for_each_batch_and_sample_with_stamps_in_order) {
    for (const std::size_t workers : {0u, 2u}) {
        Bench bench{true};
        const NumberedSource source{30};
        const RandomSampler sampler{30, 2};
        DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = workers}, "valid"};
        for (auto& batch : blocking(loader, 6)) {
            const DrawStamps stamps = batch.draw_stamps();
            BOOST_TEST(stamps.offered_ns <= stamps.taken_ns);
            BOOST_TEST(stamps.transferred_ns == stamps.taken_ns);
        }
        const Ledger ledger = bench.recorder->ledger();
        BOOST_REQUIRE(ledger.pipelines.size() == 1u);
        BOOST_TEST(ledger.pipelines[0].name == "valid");
        BOOST_TEST(ledger.pipelines[0].stages == (std::vector<std::string>{"count", "write"}),
                   boost::test_tools::per_element());
        BOOST_TEST(ledger.pipelines[0].num_workers == workers);
        BOOST_REQUIRE(ledger.batches.size() == 8u);
        for (std::uint32_t number = 0; number < 8; ++number) {
            const BatchRow& row = ledger.batches[number];
            BOOST_TEST(row.batch == number);
            BOOST_TEST(row.epoch == 6u);
            BOOST_TEST(row.size == (number < 7 ? 4u : 2u));
            BOOST_TEST(row.bytes == row.size * 40u);
            BOOST_CHECK(row.status == BatchStatus::taken);
            BOOST_TEST(row.admitted_ns <= row.first_claim_ns);
            BOOST_TEST(row.first_claim_ns <= row.last_done_ns);
            BOOST_TEST(row.last_done_ns <= row.offered_ns);
            BOOST_TEST(row.offered_ns <= row.taken_ns);
            BOOST_TEST(row.ready_batches <= 2u);
        }
        std::vector<std::uint64_t> order(30);
        sampler.order(6, order);
        BOOST_REQUIRE(ledger.samples.size() == 30u);
        for (const SampleRow& row : ledger.samples) {
            BOOST_TEST(row.index == order[row.batch * 4 + row.slot]);
            BOOST_TEST(row.bytes == 32u);
            BOOST_TEST(row.stages.count == 2u);
            BOOST_TEST(row.begin_ns >= ledger.batches[row.batch].first_claim_ns);
            BOOST_TEST(row.begin_ns <= ledger.batches[row.batch].last_done_ns);
            const auto of_worker = [&](const ThreadRow& thread) {
                return thread.name == "worker " + std::to_string(row.worker);
            };
            BOOST_TEST(std::any_of(ledger.threads.begin(), ledger.threads.end(), of_worker) == (workers != 0));
        }
    }
}

BOOST_AUTO_TEST_CASE(an_unrecorded_runtime_leaves_no_rows_and_no_stamps) {
    Bench bench;
    const NumberedSource source{8};
    const SequentialSampler sampler{8};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4}};
    for (auto& batch : blocking(loader))
        BOOST_TEST(batch.draw_stamps().taken_ns == no_stamp);
    const Ledger ledger = bench.recorder->ledger();
    BOOST_TEST(ledger.batches.empty());
    BOOST_TEST(ledger.samples.empty());
    BOOST_TEST(ledger.pipelines.empty());
}

BOOST_AUTO_TEST_CASE(a_draw_can_be_abandoned_at_any_step) {
    NumberedSource source{24};
    const RandomSampler sampler{24, 3};
    std::size_t whole = 0;
    auto body = [&](Runtime& runtime) -> Awaitable<void> {
        LoaderOptions options{.batch_size = 3, .num_workers = 2, .prefetch_depth = 1};
        DataLoader loader{runtime, source, sampler, options};
        source.closed = false;
        std::deque<Batch> held;
        for (std::size_t e = 0; e < 2; ++e) {
            EpochOptions next{.next_epoch = e == 0};
            auto pass = loader.epoch(e, next);
            for (;;) {
                auto batch = co_await pass.next();
                if (!batch)
                    break;
                held.push_back(std::move(*batch));
                if (held.size() > 1)
                    held.pop_front();
            }
        }
        ++whole;
    };
    test::destroy_at_every_step(body, [&] { source.closed = true; });
    BOOST_TEST(whole == 1u);
    BOOST_TEST(!source.filled_closed);
}

BOOST_AUTO_TEST_CASE(run_throws_operation_aborted_when_its_event_loop_is_stopped_first) {
    const auto recorder = test::small_recorder();
    Runtime runtime{{}, *recorder};
    const auto never_ends = [](Runtime& stopped) -> Awaitable<int> {
        stopped.context().stop();
        asio::use_awaitable_t<> token;
        co_await asio::post(token);
        co_return 7;
    };
    BOOST_CHECK_EXCEPTION(run(runtime, never_ends(runtime)), std::system_error, [](const std::system_error& error) {
        return error.code() == asio::error::operation_aborted;
    });
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
