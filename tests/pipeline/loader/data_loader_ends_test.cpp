#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/trace/trace.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"
#include "support/temporary_folder.hpp"

namespace drawpoint {
namespace {

using test::aborted;
using test::Bench;
using test::NumberedSource;

BOOST_AUTO_TEST_SUITE(data_loader_ends)

BOOST_AUTO_TEST_CASE(a_pass_of_more_batches_than_can_be_numbered_is_refused) {
    Bench bench;
    constexpr std::size_t samples = std::size_t{1} << 32;
    const NumberedSource source{samples};
    const SequentialSampler sampler{samples};
    BOOST_CHECK_EXCEPTION((DataLoader{bench.runtime, source, sampler, {.batch_size = 1}}), std::invalid_argument,
                          test::says("batch_size must be greater for 4294967296 samples: a pass has at most 4294967295 "
                                     "batches, got batch_size = 1"));
    const std::size_t most = 2 * (samples - 1);   // in batches of two
    const SequentialSampler whole{most}, one_more{most + 1};
    const NumberedSource larger{most + 1};
    const DataLoader loader{bench.runtime, larger, whole, {.batch_size = 2}};
    BOOST_TEST(loader.options().batch_size == 2u);
    BOOST_CHECK_THROW((DataLoader{bench.runtime, larger, one_more, {.batch_size = 2}}), std::invalid_argument);
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
    bench.runtime.context().run_one();   // until the coroutine suspends
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

BOOST_AUTO_TEST_CASE(a_forked_child_is_told_and_can_destroy_everything_and_the_parent_goes_on) {
    for (const std::size_t workers : {0u, 2u}) {
        const test::TemporaryFolder folder;
        const NumberedSource source{400};
        const SequentialSampler sampler{400};
        std::optional<Recorder> recorder{std::in_place, folder / "run.pftrace"};
        std::optional<Runtime> runtime{std::in_place, RuntimeOptions{}, *recorder};
        std::optional<DataLoader> loader{std::in_place, *runtime, source, sampler,
                                         LoaderOptions{.batch_size = 4, .num_workers = workers}};
        std::optional<DataLoader::Pass> pass{loader->epoch(0)};
        auto first = pass->next_blocking();
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(30);
            bool told = false, refused = false;
            try {
                while (pass->next_blocking()) {
                }
            } catch (const std::logic_error& error) {
                told = std::string_view{error.what()}.find("fork") != std::string_view::npos;
            }
            first.reset();
            pass.reset();
            try {
                (void)loader->epoch(1);
            } catch (const std::logic_error&) {
                refused = true;
            }
            loader.reset();
            runtime.reset();
            recorder.reset();
            ::_exit(told == (workers != 0) && refused == (workers != 0) ? 0 : 1);   // without workers it can go on
        }
        std::size_t drawn = 1;
        while (pass->next_blocking())
            ++drawn;
        BOOST_TEST(drawn == 100u);
        int status = -1;
        ::waitpid(child, &status, 0);
        BOOST_TEST(status == 0);
        first.reset();
        pass.reset();
        loader.reset();
        recorder->finish();
        BOOST_TEST(read_trace(folder / "run.pftrace").ledger.batches.size() == 100u);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
