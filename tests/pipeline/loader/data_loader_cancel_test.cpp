// Draws that are cancelled, time out, or lose their pass take nothing.
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"

namespace drawpoint {
namespace {

using namespace std::chrono_literals;
using test::Bench;
using test::NumberedSource;

bool timed_out(const std::system_error& error) { return error.code() == asio::error::timed_out; }

/// Keeps a source from making samples before open().
struct Door {
    explicit Door(NumberedSource& of) {
        of.before_fill = [this](std::uint64_t) { is_open.wait(false); };
    }
    void open() {
        is_open = true;
        is_open.notify_all();
    }
    std::atomic<bool> is_open{false};
};

BOOST_AUTO_TEST_SUITE(data_loader_cancel)

BOOST_AUTO_TEST_CASE(a_cancelled_draw_takes_nothing) {
    Bench bench;
    NumberedSource source{8};
    Door door{source};
    const SequentialSampler sampler{8};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 2, .num_workers = 1, .prefetch_depth = 4}};
    auto pass = loader.epoch(0);
    const auto draw = [&]() -> Awaitable<std::optional<Batch>> {
        auto batch = co_await pass.next();
        co_return batch;
    };
    for (const bool comes_meanwhile : {false, false, true}) {
        asio::cancellation_signal signal;
        std::exception_ptr error;
        const auto ends = [&](std::exception_ptr thrown, const std::optional<Batch>&) { error = thrown; };
        asio::co_spawn(bench.runtime.context(), draw(), asio::bind_cancellation_slot(signal.slot(), ends));
        const std::uint64_t before = loader.counters().suspensions;
        while (loader.counters().suspensions == before)
            bench.runtime.context().run_one();
        if (comes_meanwhile) {   // the wake-up is posted, but the cancel comes first
            door.open();
            while (source.fills < 8)
                std::this_thread::yield();
        }
        signal.emit(asio::cancellation_type::terminal);
        bench.runtime.context().run();
        bench.runtime.context().restart();
        BOOST_REQUIRE(error);
        BOOST_CHECK_EXCEPTION(std::rethrow_exception(error), std::system_error, test::aborted);
    }
    for (std::uint64_t i = 0; i < 4; ++i) {
        const auto batch = run(bench.runtime, draw());
        BOOST_REQUIRE(batch.has_value());
        BOOST_TEST(batch->indices()[0] == 2 * i);
    }
    BOOST_TEST(!run(bench.runtime, draw()).has_value());
}

BOOST_AUTO_TEST_CASE(what_a_suspended_draw_waits_for_is_no_other_draw_s) {
    Bench bench;
    NumberedSource source{8};
    Door door{source};
    const SequentialSampler sampler{8};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 2, .num_workers = 1, .prefetch_depth = 4}};
    auto pass = loader.epoch(0);
    std::optional<Batch> drawn;
    const auto draw = [&]() -> Awaitable<void> {
        auto batch = co_await pass.next();
        drawn = std::move(batch);
    };
    asio::co_spawn(bench.runtime.context(), draw(), [](std::exception_ptr) {});
    while (loader.counters().suspensions == 0)
        bench.runtime.context().run_one();
    door.open();
    while (loader.counters().worker_parks == 0)   // all batches are made, and the wake-up is posted
        std::this_thread::yield();
    BOOST_CHECK_THROW((void)pass.next_blocking(), std::logic_error);
    bench.runtime.context().run();
    BOOST_REQUIRE(drawn.has_value());
    BOOST_TEST(drawn->indices()[0] == 0u);
}

BOOST_AUTO_TEST_CASE(the_slot_of_a_draw_that_came_cancels_no_other_draw) {
    Bench bench;
    NumberedSource source{4};
    std::atomic<std::uint64_t> most = 0;   // samples up to this one may be made
    source.before_fill = [&](std::uint64_t index) {
        for (std::uint64_t now = most; now <= index; now = most)
            most.wait(now);
    };
    const auto let = [&](std::uint64_t samples) {
        most = samples;
        most.notify_all();
    };
    const SequentialSampler sampler{4};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 2, .num_workers = 1}};
    auto pass = loader.epoch(0);
    std::size_t drawn = 0;
    const auto draw = [&]() -> Awaitable<void> {
        const auto batch = co_await pass.next();
        drawn += batch.has_value();
    };
    std::function<void()> goes_on;   // the first coroutine waits for this, and knows no cancellation
    const auto draw_and_wait = [&]() -> Awaitable<void> {
        co_await draw();
        const auto wait = [&](auto handler) {
            goes_on = [kept = std::make_shared<decltype(handler)>(std::move(handler))] { std::move (*kept)(); };
        };
        asio::use_awaitable_t<> token;
        co_await asio::async_initiate<asio::use_awaitable_t<>, void()>(wait, token);
    };
    const auto until = [&](auto condition) {
        while (!condition())
            bench.runtime.context().run_one();
    };
    asio::cancellation_signal signal;
    asio::co_spawn(bench.runtime.context(), draw_and_wait(),
                   asio::bind_cancellation_slot(signal.slot(), [](std::exception_ptr) {}));
    until([&] { return loader.counters().suspensions == 1; });
    let(2);
    until([&] { return goes_on != nullptr; });
    std::exception_ptr error;
    asio::co_spawn(bench.runtime.context(), draw(), [&](std::exception_ptr thrown) { error = thrown; });
    until([&] { return loader.counters().suspensions == 2; });
    signal.emit(asio::cancellation_type::terminal);
    let(4);
    until([&] { return error || drawn == 2; });
    BOOST_TEST(!error);
    goes_on();
    bench.runtime.context().run();
}

BOOST_AUTO_TEST_CASE(a_draw_that_times_out_takes_nothing_and_a_timer_outlives_no_draw) {
    Bench bench;
    NumberedSource source{8};
    Door door{source};
    const SequentialSampler sampler{8};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 2, .num_workers = 1}};
    auto pass = loader.epoch(0);
    const auto draw = [&](std::chrono::nanoseconds timeout) -> Awaitable<std::optional<Batch>> {
        auto batch = co_await pass.next_for(timeout);
        co_return batch;
    };
    for (const auto timeout : {-1ms, 0ms, 1ms, 3ms})
        BOOST_CHECK_EXCEPTION((void)run(bench.runtime, draw(timeout)), std::system_error, timed_out);
    door.open();
    for (std::uint64_t i = 0; i < 4; ++i) {
        const auto batch = run(bench.runtime, draw(1h));
        BOOST_REQUIRE(batch.has_value());
        BOOST_TEST(batch->indices()[0] == 2 * i);
    }
    BOOST_TEST(!run(bench.runtime, draw(1h)).has_value());
    BOOST_TEST(bench.runtime.context().poll() <= 4u);   // timers that were cancelled, none that waits
    BOOST_TEST(bench.runtime.context().stopped());
}

BOOST_AUTO_TEST_CASE(whatever_the_timeouts_every_batch_comes_once_and_in_order) {
    std::mt19937_64 random{5};
    std::size_t timeouts = 0;
    for (const std::size_t workers : {1u, 3u}) {
        Bench bench;
        NumberedSource source{3000};
        source.before_fill = [](std::uint64_t index) {
            if (index % 3 == 0)
                std::this_thread::sleep_for(std::chrono::microseconds{index * 7919 % 300});
        };
        const SequentialSampler sampler{3000};
        DataLoader loader{bench.runtime, source, sampler, {.batch_size = 3, .num_workers = workers}};
        const auto body = [&]() -> Awaitable<void> {
            auto pass = loader.epoch(0);
            for (std::uint64_t expected = 0; expected < 3000;) {
                try {
                    const std::chrono::microseconds timeout{random() % 250};
                    auto batch = co_await pass.next_for(timeout);
                    BOOST_REQUIRE(batch.has_value());
                    BOOST_REQUIRE_EQUAL(batch->indices()[0], expected);
                    expected += batch->size();
                } catch (const std::system_error& error) {
                    BOOST_REQUIRE(timed_out(error));
                    ++timeouts;
                }
            }
            auto end = co_await pass.next();
            BOOST_TEST(!end.has_value());
        };
        run(bench.runtime, body());
        BOOST_TEST(loader.counters().batches_taken == 1000u);
    }
    BOOST_TEST_MESSAGE(timeouts << " timeouts");
}

BOOST_AUTO_TEST_CASE(a_pass_destroyed_under_a_suspended_draw_ends_it_and_the_next_pass_is_whole) {
    Bench bench;
    NumberedSource source{8};
    Door door{source};
    const SequentialSampler sampler{8};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 2, .num_workers = 1}};
    std::optional<DataLoader::Pass> pass{loader.epoch(0)};
    std::exception_ptr error;
    const auto body = [&]() -> Awaitable<void> { auto batch = co_await pass->next(); };
    asio::co_spawn(bench.runtime.context(), body(), [&](std::exception_ptr thrown) { error = thrown; });
    while (loader.counters().suspensions == 0)
        bench.runtime.context().run_one();
    BOOST_CHECK_THROW((void)pass->next_blocking(), std::logic_error);   // another draw is suspended
    pass.reset();
    door.open();
    bench.runtime.context().run();
    BOOST_REQUIRE(error);
    BOOST_CHECK_EXCEPTION(std::rethrow_exception(error), std::system_error, test::aborted);
    auto next = loader.epoch(1);
    std::size_t drawn = 0;
    while (const auto batch = next.next_blocking())
        drawn += batch->size();
    BOOST_TEST(drawn == 8u);
}

BOOST_AUTO_TEST_CASE(a_draw_that_was_interrupted_leaves_the_next_one_its_wake_up) {
    Bench bench;
    NumberedSource source{8};
    Door door{source};
    const SequentialSampler sampler{8};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 2, .num_workers = 1}};
    std::optional<DataLoader::Pass> pass{loader.epoch(0)};
    std::exception_ptr first, second;
    const auto draws = [&]() -> Awaitable<void> { auto batch = co_await pass->next(); };
    const auto draws_soon = [&]() -> Awaitable<void> { auto batch = co_await pass->next_for(20s); };
    asio::co_spawn(bench.runtime.context(), draws(), [&](std::exception_ptr thrown) { first = thrown; });
    while (loader.counters().suspensions == 0)
        bench.runtime.context().run_one();
    // The next draw is queued before the end of the pass queues the first one's resumption, so it suspends earlier.
    asio::co_spawn(bench.runtime.context(), draws_soon(), [&](std::exception_ptr thrown) { second = thrown; });
    pass.reset();
    pass.emplace(loader.epoch(1));
    while (loader.counters().suspensions == 1)
        bench.runtime.context().run_one();
    bench.runtime.context().poll();
    BOOST_TEST((first != nullptr));
    door.open();
    bench.runtime.context().run();
    BOOST_TEST((second == nullptr));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
