#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/loader/core/sample_buffer.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/orders.hpp"
#include "pipeline/loader/running_workers.hpp"
#include "pipeline/loader/stored_source.hpp"
#include "support/coro_test.hpp"
#include "support/count_allocations.hpp"

namespace drawpoint {
namespace {

using test::comes_to;
using test::NumberedSource;
using test::StoredSource;

constexpr std::size_t samples = 203, batch_size = 8, epochs = 3;

/// Samples of 1 … 17 numbers.
class Words final : public SampleSource {
public:
    std::size_t size() const noexcept override { return samples; }
    SampleLayout layout() const noexcept override { return {.type = ScalarType::int64, .rank = 1, .shape = {0}}; }
    std::vector<std::string> stages() const override { return {"write"}; }
    std::string path(std::uint64_t) const override { return {}; }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<WorkerScratch>(); }
    void fill(SampleTask& task, WorkerScratch&) const override {
        const auto count = static_cast<std::int64_t>(1 + (task.index * 7 + task.epoch * 5) % 17);
        std::ranges::fill(task.buffer->reshape({ScalarType::int64, 1, {count}}), std::byte(task.index + task.epoch));
        *task.target = NumberedSource::target(task.index);
        task.stages[0] = {task.clock ? task.clock->now_ns() : 0, 0};
        task.stage_count = 1;
    }
};

/// What a random change may affect.
struct May {
    bool workers = true, order = false;
    std::vector<std::uint64_t> budgets{};
};

LoaderChange random_change(std::mt19937_64& random, const May& may) {
    LoaderChange change;
    const std::uint64_t what = random() % 8;
    if (what < 3 && may.workers)
        change.num_workers = 1 + random() % 5;
    if (what >= 2 && what < 6)
        change.prefetch_depth = 1 + (random() % 8 == 0 ? random() % 55 : random() % 6);
    if (what == 6 && !may.budgets.empty())
        change.memory_budget = may.budgets[random() % may.budgets.size()];
    if (what == 7 && may.order) {
        const std::uint64_t which = random();
        change.order = test::nth_order(which, static_cast<std::uint32_t>(1 + random() % 3));
    }
    return change;
}

struct Drawn {
    std::string digest;
    std::vector<std::multiset<std::uint64_t>> indices = std::vector<std::multiset<std::uint64_t>>(epochs);
    std::vector<std::vector<std::size_t>> numbers = std::vector<std::vector<std::size_t>>(epochs);
    std::size_t failures = 0;
    LoaderCounters counters;
};

/// Draws all epochs, with a random change after each draw if `may` is set; holds some batches.
Drawn draw(const SampleSource& source, const LoaderOptions& options, const May* may, std::uint64_t seed,
           WorkerThreads threads = WorkerThreads::threads) {
    const auto recorder = test::small_recorder();
    Runtime runtime{{.workers = threads, .record = seed % 2 == 0}, *recorder};
    const RandomSampler sampler{source.size(), 7};
    DataLoader loader{runtime, source, sampler, options};
    loader.enable_digest();
    std::mt19937_64 random{seed};
    Drawn drawn;
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
        auto pass = loader.epoch(epoch, {.next_epoch = seed % 3 != 0});
        std::deque<Batch> held;
        for (std::size_t left = *pass.size(); left != 0; --left) {
            while (held.size() > std::min<std::size_t>(random() % 3, loader.options().prefetch_depth))
                held.pop_front();
            try {
                held.push_back(*pass.next_blocking());
                drawn.numbers[epoch].push_back(held.back().number());
                drawn.indices[epoch].insert(held.back().indices().begin(), held.back().indices().end());
            } catch (const SampleError&) {
                ++drawn.failures;
            }
            if (may != nullptr)
                loader.reconfigure(random_change(random, *may));
        }
        held.clear();
        BOOST_TEST(!pass.next_blocking().has_value());
    }
    drawn.digest = loader.digest();
    drawn.counters = loader.counters();
    return drawn;
}

void check_whole(const Drawn& drawn, std::uint64_t seed) {
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
        BOOST_TEST(drawn.indices[epoch].size() == samples, "seed " << seed);
        BOOST_TEST(std::set<std::uint64_t>(drawn.indices[epoch].begin(), drawn.indices[epoch].end()).size() == samples,
                   "seed " << seed);
        BOOST_TEST(drawn.failures == 0u);
    }
}

std::string refusal(DataLoader& loader, const LoaderChange& change) {
    try {
        loader.reconfigure(change);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return {};
}

BOOST_AUTO_TEST_SUITE(live_control)

BOOST_AUTO_TEST_CASE(in_order_the_digest_is_the_same_whatever_changes_after_every_draw) {
    for (const bool runs : {false, true}) {
        NumberedSource source{samples};
        source.runs = runs;
        const LoaderOptions options{.batch_size = batch_size, .num_workers = 2, .seed = 5};
        const Drawn still = draw(source, options, nullptr, 0);
        check_whole(still, 0);
        const May may{.budgets = {0, std::uint64_t{64} << 20, std::uint64_t{17} << 20}};
        for (std::uint64_t seed = 0; seed < 12; ++seed) {
            const Drawn moved =
                draw(source, options, &may, seed, seed % 4 == 3 ? WorkerThreads::arena : WorkerThreads::threads);
            BOOST_TEST(moved.digest == still.digest, "seed " << seed);
            BOOST_TEST(moved.counters.samples_taken == samples * epochs);
            BOOST_TEST(moved.counters.handler_fallbacks == 0u);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_worker_that_rests_frees_its_scratch) {
    NumberedSource source{samples};
    source.before_fill = [](std::uint64_t) { std::this_thread::sleep_for(std::chrono::microseconds{50}); };
    const SequentialSampler sampler{samples};
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    DataLoader loader{runtime, source, sampler, {.batch_size = 2, .num_workers = 4}};
    std::size_t epoch = 0;
    const auto pass_with = [&](std::size_t workers) {
        loader.reconfigure({.num_workers = workers});
        auto pass = loader.epoch(epoch++);
        BOOST_TEST(comes_to(loader, workers));
        while (pass.next_blocking()) {
        }
    };
    // One that comes back makes itself another one, as soon as it makes a sample.
    for (int rounds = 0; rounds < 100 && source.scratches <= 4; ++rounds)
        for (const std::size_t workers : {4u, 1u})
            pass_with(workers);
    BOOST_TEST(source.scratches > 4u);
}

BOOST_AUTO_TEST_CASE(without_workers_the_digest_is_the_same_too) {
    const NumberedSource source{samples};
    const LoaderOptions options{.batch_size = batch_size, .num_workers = 0, .seed = 5};
    const Drawn still = draw(source, options, nullptr, 0);
    const May may{.workers = false, .order = true};
    for (std::uint64_t seed = 0; seed < 6; ++seed)
        BOOST_TEST(draw(source, options, &may, seed).digest == still.digest, "seed " << seed);
}

BOOST_AUTO_TEST_CASE(collated_batches_are_the_same_whatever_changes_and_whatever_the_budget) {
    const Words source;
    const PadCollate pad{source.layout()};
    const LoaderOptions options{.batch_size = batch_size, .num_workers = 2, .seed = 5, .collate = &pad};
    const Drawn still = draw(source, options, nullptr, 0);
    constexpr std::uint64_t five_workers = (std::uint64_t{10} << 20) + 2 * samples * sizeof(std::uint64_t);
    const May may{.budgets = {0, five_workers + 1, five_workers + 10'000, five_workers + 100'000}};
    for (std::uint64_t seed = 0; seed < 16; ++seed)
        BOOST_TEST(draw(source, options, &may, seed).digest == still.digest, "seed " << seed);
}

BOOST_AUTO_TEST_CASE(with_reads_ahead_the_digest_is_the_same) {
    StoredSource source{samples};
    const LoaderOptions options{.batch_size = batch_size, .num_workers = 2, .seed = 5, .read_concurrency = 6};
    const Drawn still = draw(source, options, nullptr, 0);
    source.before_read = [](std::uint64_t) { std::this_thread::sleep_for(std::chrono::microseconds{100}); };
    const May may{.budgets = {0, std::uint64_t{64} << 20, std::uint64_t{14} << 20}};
    std::uint64_t ahead = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const Drawn moved = draw(source, options, &may, seed);
        BOOST_TEST(moved.digest == still.digest, "seed " << seed);
        ahead += moved.counters.reads_ahead;
    }
    BOOST_TEST(ahead > 0u);
}

BOOST_AUTO_TEST_CASE(in_any_order_each_epoch_has_every_sample_once) {
    const NumberedSource source{samples};
    const May may{.order = true, .budgets = {0, std::uint64_t{17} << 20}};
    for (std::uint64_t seed = 0; seed < 12; ++seed)
        check_whole(
            draw(source, {.batch_size = batch_size, .num_workers = 3, .order = test::nth_order(seed, 2)}, &may, seed),
            seed);
}

BOOST_AUTO_TEST_CASE(samples_that_fail_in_between_fail_their_batches_and_no_others) {
    NumberedSource source{samples};
    source.fails = [](std::uint64_t index) { return index % 40 == 3; };
    const LoaderOptions options{.batch_size = batch_size, .num_workers = 2, .seed = 5};
    const Drawn still = draw(source, options, nullptr, 0);
    BOOST_TEST(still.failures > 0u);
    const May may{};
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const Drawn moved = draw(source, options, &may, seed);
        BOOST_TEST(moved.failures == still.failures);
        BOOST_TEST(moved.digest == still.digest, "seed " << seed);
    }
}

BOOST_AUTO_TEST_CASE(a_pass_that_is_destroyed_early_leaves_nothing_behind) {
    const NumberedSource source{samples};
    const SequentialSampler sampler{samples};
    std::mt19937_64 random{3};
    const auto recorder = test::small_recorder();
    Runtime runtime{{.workers = WorkerThreads::threads}, *recorder};
    DataLoader loader{runtime, source, sampler, {.batch_size = batch_size, .num_workers = 2, .seed = 5}};
    for (std::size_t epoch = 0; epoch < 60; ++epoch) {
        loader.reconfigure(random_change(random, {.order = true}));
        auto pass = loader.epoch(epoch, {.next_epoch = epoch % 2 == 0});
        std::set<std::uint64_t> seen;
        const std::size_t draws = epoch % 3 == 0 ? *pass.size() : random() % *pass.size();
        for (std::size_t drawn = 0; drawn < draws; ++drawn) {
            loader.reconfigure(random_change(random, {.order = true}));
            const auto batch = pass.next_blocking();
            BOOST_TEST(source.fault(*batch, 5) == "");
            BOOST_TEST(batch->epoch() == epoch);
            for (const std::uint64_t index : batch->indices())
                BOOST_TEST(seen.insert(index).second);
        }
        BOOST_TEST((draws < *pass.size() || seen.size() == samples));
    }
}

BOOST_AUTO_TEST_CASE(workers_come_and_go_also_while_everybody_sleeps) {
    for (const WorkerThreads kind : {WorkerThreads::threads, WorkerThreads::arena}) {
        const NumberedSource source{samples};
        const SequentialSampler sampler{samples};
        const auto recorder = test::small_recorder();
        Runtime runtime{{.workers = kind}, *recorder};
        DataLoader loader{runtime, source, sampler, {.batch_size = batch_size, .num_workers = 2}};
        auto pass = loader.epoch(0);   // the slots fill, then all threads are idle
        BOOST_TEST(comes_to(loader, 2));
        for (const std::size_t workers : {5u, 1u, 4u, 4u, 6u, 1u, 2u}) {
            loader.reconfigure({.num_workers = workers});
            BOOST_TEST(loader.options().num_workers == workers);
            BOOST_TEST(comes_to(loader, workers), workers << " workers");
        }
        std::size_t drawn = 0;
        while (const auto batch = pass.next_blocking())
            drawn += batch->size();
        BOOST_TEST(drawn == samples);
        BOOST_TEST(loader.counters().workers_running == 2u);
    }
}

BOOST_AUTO_TEST_CASE(workers_leave_in_the_midst_of_a_batch) {
    test::Bench bench;
    NumberedSource source{1000};
    std::atomic<bool> have_left{false};
    source.before_fill = [&](std::uint64_t index) {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
        if (index >= 900)
            have_left.wait(false);   // whoever gets here before has not left
    };
    const SequentialSampler sampler{1000};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 1000, .num_workers = 4, .prefetch_depth = 1}};
    DataLoader::Pass pass = loader.epoch(0);   // one batch, of which there is always more to claim
    BOOST_TEST(comes_to(loader, 4));
    loader.reconfigure({.num_workers = 1});
    BOOST_TEST(comes_to(loader, 1));
    have_left = true;
    have_left.notify_all();
    BOOST_TEST(pass.next_blocking().has_value());
}

BOOST_AUTO_TEST_CASE(numbers_from_before_the_first_pass_hold_in_it) {
    const NumberedSource source{samples};
    const SequentialSampler sampler{samples};
    const auto recorder = test::small_recorder();
    Runtime runtime{{.workers = WorkerThreads::threads}, *recorder};
    DataLoader loader{runtime, source, sampler, {.batch_size = batch_size, .num_workers = 4, .prefetch_depth = 9}};
    loader.reconfigure({.num_workers = 1, .prefetch_depth = 3});
    auto pass = loader.epoch(0);
    BOOST_TEST(comes_to(loader, 1));
    (void)pass.next_blocking();
    BOOST_TEST(source.scratches.load() == 1u);
    BOOST_TEST(loader.options().prefetch_depth == 3u);
}

BOOST_AUTO_TEST_CASE(a_loader_may_end_at_any_moment_after_a_change) {
    const NumberedSource source{samples};
    const SequentialSampler sampler{samples};
    std::mt19937_64 random{9};
    const auto recorder = test::small_recorder();
    Runtime runtime{{.workers = WorkerThreads::threads, .record = false}, *recorder};
    for (int round = 0; round < 150; ++round) {
        std::optional<Batch> kept;
        DataLoader loader{runtime, source, sampler, {.batch_size = batch_size, .num_workers = 1 + random() % 3}};
        auto pass = loader.epoch(0);
        for (std::uint64_t draws = random() % 4; draws != 0; --draws) {
            loader.reconfigure(random_change(random, {.order = true}));
            kept = pass.next_blocking();
        }
        if (round % 3 == 0)
            loader.request_stop();
        loader.reconfigure({.num_workers = 1 + random() % 4, .prefetch_depth = 1 + random() % 4});
    }
}

BOOST_AUTO_TEST_CASE(a_smaller_depth_is_kept_and_its_memory_given_up_as_batches_come_back) {
    const NumberedSource source{4096, 512};
    const SequentialSampler sampler{source.size()};
    const auto recorder = test::small_recorder();
    Runtime runtime{{.workers = WorkerThreads::threads}, *recorder};
    DataLoader loader{runtime, source, sampler, {.batch_size = 16, .num_workers = 2, .prefetch_depth = 12}};
    const std::uint64_t slot = loader.memory_plan().slot_bytes;
    auto pass = loader.epoch(0);
    const auto draw_some = [&](std::size_t draws) {
        for (; draws != 0; --draws)
            BOOST_TEST(source.fault(*pass.next_blocking(), 0) == "");
    };
    const auto holds = [&](std::uint64_t bytes) {
        const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes{1};
        while (loader.counters().slots_bytes != bytes && std::chrono::steady_clock::now() < latest)
            std::this_thread::yield();
        return loader.counters().slots_bytes == bytes;
    };
    draw_some(1);
    BOOST_TEST(holds(13 * slot));
    std::vector<Batch> held;
    for (int i = 0; i < 5; ++i)
        held.push_back(*pass.next_blocking());
    loader.reconfigure({.prefetch_depth = 2});
    // Batches that are complete are drawn, even if more are held than the new depth allows; then no more come until
    // some are given back.
    BOOST_CHECK_EXCEPTION(
        for (;;) held.push_back(*pass.next_blocking()), std::logic_error, [](const std::logic_error& error) {
            return std::string{error.what()} ==
                   "next(): all prefetch_depth + 1 = 3 batches are held; give one back or raise prefetch_depth";
        });
    for (std::size_t i = 0; i < held.size(); ++i)
        BOOST_TEST(source.fault(held[i], 0) == "");
    held.clear();
    draw_some(8);
    BOOST_TEST(holds(3 * slot));
    loader.reconfigure({.prefetch_depth = 55});
    draw_some(1);
    BOOST_TEST(holds(56 * slot));
    // A budget for 7 batches.
    const MemoryPlan plan = loader.memory_plan();
    loader.reconfigure({.memory_budget = plan.planned_bytes - plan.slots_bytes + 7 * slot + slot / 2});
    BOOST_TEST(loader.options().prefetch_depth == 6u);
    draw_some(60);
    BOOST_TEST(holds(7 * slot));
    loader.reconfigure({.memory_budget = 0});   // back to the requested depth
    BOOST_TEST(loader.options().prefetch_depth == 55u);
}

BOOST_AUTO_TEST_CASE(who_holds_more_than_there_are_to_be_still_gets_what_is_being_made) {
    NumberedSource source{40};
    std::atomic<bool> shrunk{false};
    source.before_fill = [&](std::uint64_t index) {
        if (index < 3)
            return;
        shrunk.wait(false);
        std::this_thread::sleep_for(std::chrono::milliseconds{10});   // so that the loop has to wait
    };
    const SequentialSampler sampler{40};
    const auto recorder = test::small_recorder();
    Runtime runtime{{.workers = WorkerThreads::threads}, *recorder};
    DataLoader loader{runtime, source, sampler, {.num_workers = 1, .prefetch_depth = 5}};
    auto pass = loader.epoch(0);
    std::vector<Batch> held;
    for (int i = 0; i < 3; ++i)
        held.push_back(*pass.next_blocking());
    loader.reconfigure({.prefetch_depth = 1});
    shrunk = true;
    shrunk.notify_all();
    BOOST_TEST(pass.next_blocking()->number() == 3u);
}

BOOST_AUTO_TEST_CASE(numbers_out_of_range_are_refused_by_name_and_change_nothing) {
    const NumberedSource source{samples};
    const SequentialSampler sampler{samples};
    const auto recorder = test::small_recorder();
    Runtime runtime{{.max_threads = 4}, *recorder};
    DataLoader loader{runtime, source, sampler, {.batch_size = batch_size, .num_workers = 2, .prefetch_depth = 3}};
    BOOST_TEST(refusal(loader, {.num_workers = 0, .prefetch_depth = 9}) == "num_workers must be at least 1, got 0");
    BOOST_TEST(refusal(loader, {.num_workers = 5}) == "num_workers must be at most max_threads = 4, got 5");
    BOOST_TEST(refusal(loader, {.num_workers = 3, .prefetch_depth = 0}) == "prefetch_depth must be at least 1, got 0");
    BOOST_TEST(refusal(loader, {.prefetch_depth = 56}) == "prefetch_depth must be at most 55, got 56");
    BOOST_TEST(refusal(loader, {.prefetch_depth = 7, .memory_budget = 1}).starts_with("memory_budget = 1 is "));
    BOOST_TEST(loader.options().num_workers == 2u);
    BOOST_TEST(loader.options().prefetch_depth == 3u);
    BOOST_TEST(loader.options().memory_budget == 0u);
    BOOST_TEST((loader.options().order == OrderRule::in_order()));
    DataLoader alone{runtime, source, sampler, {.batch_size = batch_size, .num_workers = 0}};
    BOOST_TEST(refusal(alone, {.num_workers = 2}) ==
               "num_workers must stay 0: the loader was made without workers, got 2");
    BOOST_TEST(refusal(alone, {.num_workers = 0, .prefetch_depth = 4}) == "");
    BOOST_TEST(alone.options().prefetch_depth == 4u);
}

BOOST_AUTO_TEST_CASE(each_change_in_effect_is_a_setting_in_the_recording) {
    const NumberedSource source{samples};
    const SequentialSampler sampler{samples};
    const auto recorder = test::small_recorder();
    {
        Runtime runtime{{.workers = WorkerThreads::threads}, *recorder};
        DataLoader loader{runtime, source, sampler, {.batch_size = batch_size, .num_workers = 1}};
        auto pass = loader.epoch(0);
        (void)pass.next_blocking();
        loader.reconfigure({.num_workers = 2});
        loader.reconfigure({.num_workers = 2});                 // no change
        loader.reconfigure({.order = OrderRule::bounded(3)});   // applies to the next pass
        loader.reconfigure({.prefetch_depth = 4, .memory_budget = std::uint64_t{1} << 30});
        while (pass.next_blocking())
            ;
        pass = loader.epoch(1);
    }
    const std::vector<SettingRow> rows = recorder->ledger().settings;
    BOOST_REQUIRE(rows.size() == 3u);
    const auto is = [&](std::size_t row, std::uint32_t workers, std::uint32_t depth, std::uint32_t overtakes,
                        std::uint64_t budget) {
        BOOST_TEST(rows[row].at_ns > (row == 0 ? 0 : rows[row - 1].at_ns));
        BOOST_TEST(rows[row].num_workers == workers);
        BOOST_TEST(rows[row].prefetch_depth == depth);
        BOOST_TEST(rows[row].order.max_overtakes == overtakes);
        BOOST_TEST(rows[row].read_concurrency == 0u);   // the source does not read
        BOOST_TEST(rows[row].memory_budget == budget);
    };
    is(0, 2, 2, 0, 0);
    is(1, 2, 4, 0, std::uint64_t{1} << 30);
    is(2, 2, 4, 3, std::uint64_t{1} << 30);
}

BOOST_AUTO_TEST_CASE(a_setting_says_how_many_reads_its_budget_leaves) {
    const auto recorder = test::small_recorder();
    const StoredSource source{samples};
    const SequentialSampler sampler{samples};
    Runtime runtime{{.workers = WorkerThreads::threads}, *recorder};
    DataLoader loader{runtime, source, sampler, {.batch_size = batch_size, .num_workers = 1}};
    std::vector<std::size_t> expected;
    auto pass = loader.epoch(0);
    (void)pass.next_blocking();
    const std::uint64_t planned = loader.memory_plan().planned_bytes;
    for (const std::uint64_t budget : {2 * planned, planned, std::uint64_t{0}}) {
        loader.reconfigure({.memory_budget = budget});
        expected.push_back(loader.memory_plan().read_concurrency);
    }
    const std::vector<SettingRow> rows = recorder->ledger().settings;
    BOOST_REQUIRE(rows.size() == expected.size());
    for (std::size_t row = 0; row < rows.size(); ++row)
        BOOST_TEST(rows[row].read_concurrency == expected[row]);
    BOOST_TEST(expected[1] < expected[0]);
    BOOST_TEST(expected[2] == 64u);
}

BOOST_AUTO_TEST_CASE(an_order_begins_with_the_next_pass) {
    // One sample of the oldest batch is slower than the others: only in order does its batch come first.
    NumberedSource source{24};
    std::atomic<bool> holds{false}, others{false};
    source.before_fill = [&](std::uint64_t index) {
        if (index == 0)
            others.wait(!holds.load());
    };
    const SequentialSampler sampler{24};
    const auto recorder = test::small_recorder();
    Runtime runtime{{.workers = WorkerThreads::threads}, *recorder};
    DataLoader loader{runtime, source, sampler, {.batch_size = 4, .num_workers = 2, .prefetch_depth = 3}};
    {
        auto pass = loader.epoch(0);
        loader.reconfigure({.order = OrderRule::out_of_order()});
        for (std::size_t number = 0; const auto batch = pass.next_blocking(); ++number)
            BOOST_TEST(batch->number() == number);
    }
    holds = true;
    auto pass = loader.epoch(1);
    BOOST_TEST(pass.next_blocking()->number() != 0u);
    others = true;
    others.notify_all();
}

/// Rows during whose making a worker counts its allocations.
class Counted final : public SampleSource {
public:
    std::size_t size() const noexcept override { return 16 * 400; }
    SampleLayout layout() const noexcept override { return {.rank = 1, .shape = {1024}}; }
    std::vector<std::string> stages() const override { return {"fill"}; }
    std::string path(std::uint64_t) const override { return {}; }
    std::unique_ptr<WorkerScratch> make_scratch() const override {
        test::count_this_thread(false);   // once per worker, on a busy machine many draws after it was requested
        return std::make_unique<WorkerScratch>();
    }
    void fill(SampleTask& task, WorkerScratch&) const override {
        test::count_this_thread(true);
        std::ranges::fill(task.data, std::byte{1});
        *task.target = 0;
        task.stages[0] = {task.clock ? task.clock->now_ns() : 0, 0};
        task.stage_count = 1;
    }
};

BOOST_AUTO_TEST_CASE(after_a_change_batches_are_made_without_allocating_again) {
    for (const bool record : {false, true}) {
        const auto recorder = test::small_recorder();
        Runtime runtime{{.workers = WorkerThreads::threads,
                         .record = record,
                         .on_worker_start = []() noexcept { test::count_this_thread(false); }},
                        *recorder};
        const Counted source;
        const SequentialSampler sampler{source.size()};
        DataLoader loader{runtime, source, sampler, {.batch_size = 16, .num_workers = 2, .prefetch_depth = 4}};
        auto pass = loader.epoch(0);
        std::uint64_t counted = 0;
        const auto draw_some = [&](std::size_t draws) {
            const std::uint64_t before = test::counted_allocations();
            test::count_this_thread(true);
            for (; draws != 0; --draws)
                (void)pass.next_blocking();
            test::count_this_thread(false);
            return test::counted_allocations() - before;
        };
        const std::vector<LoaderChange> changes{
            {.num_workers = 4}, {.prefetch_depth = 9}, {.num_workers = 1}, {.prefetch_depth = 2}, {.num_workers = 3}};
        for (const LoaderChange& change : changes) {
            loader.reconfigure(change);
            BOOST_TEST(comes_to(loader, loader.options().num_workers));
            (void)draw_some(40);   // so that slots have their memory, and workers their scratch
            counted += draw_some(20);
        }
        BOOST_TEST(counted == 0u, counted << " allocations, record " << record);
    }
}

Awaitable<void> draw_while_changing(DataLoader& loader, std::uint64_t seed, std::size_t& drawn) {
    std::mt19937_64 random{seed};
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
        const EpochOptions options{.next_epoch = true};
        auto pass = loader.epoch(epoch, options);
        for (;;) {
            auto batch = co_await pass.next();
            if (!batch)
                break;
            drawn += batch->size();
            loader.reconfigure(random_change(random, May{}));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_coroutine_may_change_them_between_its_draws) {
    NumberedSource source{samples};
    source.before_fill = [](std::uint64_t index) {
        if (index % 16 == 0)
            std::this_thread::yield();
    };
    const RandomSampler sampler{samples, 3};
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const auto recorder = test::small_recorder();
        Runtime runtime{{.workers = WorkerThreads::threads}, *recorder};
        DataLoader loader{runtime, source, sampler, {.batch_size = batch_size, .num_workers = 2}};
        std::size_t drawn = 0;
        run(runtime, draw_while_changing(loader, seed, drawn));
        BOOST_TEST(drawn == samples * epochs);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
