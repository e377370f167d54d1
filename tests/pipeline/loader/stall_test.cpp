// A loop that waits too long is told what the workers are at.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;
using test::says;
using namespace std::chrono_literals;

/// Opens once it was told so many times something with these words; what is told without them is left out.
class Gate final : public StallObserver {
public:
    explicit Gate(std::size_t opens_after, std::string words = "")
        : opens_after_{opens_after}, words_{std::move(words)} {}

    void stalled(std::string_view what) noexcept override {
        const std::lock_guard lock{mutex_};
        if (what.find(words_) == what.npos)   // a draw that was slow because the machine was
            return;
        told_.emplace_back(what);
        changed_.notify_all();
    }
    void pass() {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [this] { return told_.size() >= opens_after_; });
    }
    [[nodiscard]] std::vector<std::string> told() const {
        const std::lock_guard lock{mutex_};
        return told_;
    }

private:
    std::size_t opens_after_;
    std::string words_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> told_;
};

bool tells(const std::string& told, std::string_view words) {
    BOOST_TEST_MESSAGE(told);
    return told.find(words) != std::string::npos;
}

LoaderOptions watched(Gate& gate, std::size_t workers) {
    return {.batch_size = 2, .num_workers = workers, .stall_timeout = 40ms, .on_stall = &gate};
}

BOOST_AUTO_TEST_SUITE(stall)

BOOST_AUTO_TEST_CASE(a_draw_that_blocks_or_suspends_tells_who_is_at_what) {
    for (const std::size_t workers : {0u, 2u})
        for (const bool suspends : {false, true})
            for (const bool runs : {false, true}) {
                BOOST_TEST_CONTEXT(workers << " workers, suspends " << suspends << ", runs " << runs) {
                    Bench bench;
                    Gate gate{1, "makes sample 4"};
                    NumberedSource source{8};
                    source.runs = runs;
                    source.before_fill = [&](std::uint64_t index) {
                        if (index == 4)
                            gate.pass();
                    };
                    const SequentialSampler sampler{8};
                    DataLoader loader{bench.runtime, source, sampler, watched(gate, workers)};
                    const auto draw_all = [&]() -> Awaitable<void> {
                        DataLoader::Pass pass = loader.epoch(3);
                        std::size_t batches = 0;
                        for (;;) {
                            if (suspends) {
                                const auto batch = co_await pass.next();
                                if (!batch)
                                    break;
                                BOOST_TEST(source.fault(*batch, 0) == "");
                            } else {
                                const auto batch = pass.next_blocking();
                                if (!batch)
                                    break;
                                BOOST_TEST(source.fault(*batch, 0) == "");
                            }
                            ++batches;
                        }
                        BOOST_TEST(batches == 4u);
                    };
                    run(bench.runtime, draw_all());
                    BOOST_TEST_REQUIRE(!gate.told().empty());
                    const std::string told = gate.told().front();
                    BOOST_TEST(tells(told, "loader train: the loop has waited "));
                    BOOST_TEST(tells(told, " s for a batch of epoch 3, of which 2 are drawn\n"));
                    BOOST_TEST(tells(told, " makes sample 4 (numbers/4), for "));
                    BOOST_TEST(tells(told, workers == 0 ? "\n  the loop itself makes " : "\n  worker "));
                }
            }
}

BOOST_AUTO_TEST_CASE(a_wait_that_goes_on_is_told_again_after_twice_the_time) {
    Bench bench;
    Gate gate{3};
    NumberedSource source{2};
    source.before_fill = [&](std::uint64_t index) {
        if (index == 1)
            gate.pass();
    };
    const SequentialSampler sampler{2};
    DataLoader loader{bench.runtime, source, sampler, watched(gate, 1)};
    DataLoader::Pass pass = loader.epoch(0);
    const auto begin = std::chrono::steady_clock::now();
    BOOST_TEST(pass.next_blocking().has_value());
    BOOST_TEST((std::chrono::steady_clock::now() - begin >= 4 * 40ms));
    BOOST_TEST(gate.told().size() >= 3u);
}

/// Its order waits for the gate.
struct StuckSampler final : Sampler {
    explicit StuckSampler(Gate& at) : gate{&at} {}
    [[nodiscard]] std::size_t size() const noexcept override { return 4; }
    void order(std::size_t, std::span<std::uint64_t> order) const override {
        std::iota(order.begin(), order.end(), 0);
        gate->pass();
    }
    Gate* gate;
};

BOOST_AUTO_TEST_CASE(an_order_that_is_not_made_is_told_whoever_makes_it) {
    for (const std::size_t workers : {0u, 1u}) {
        Bench bench;
        Gate gate{1, "computes the sampler's order"};
        const NumberedSource source{4};
        const StuckSampler sampler{gate};
        DataLoader loader{bench.runtime, source, sampler, watched(gate, workers)};
        DataLoader::Pass pass = loader.epoch(7);
        BOOST_TEST(pass.next_blocking().has_value());
        BOOST_TEST_REQUIRE(!gate.told().empty());
        BOOST_TEST(tells(gate.told().front(), " computes the sampler's order of epoch 7, for "));
    }
}

BOOST_AUTO_TEST_CASE(a_loop_that_does_not_wait_is_told_nothing) {
    Bench bench;
    Gate gate{1};
    const NumberedSource source{4};
    const SequentialSampler sampler{4};
    DataLoader loader{bench.runtime, source, sampler, watched(gate, 1)};
    DataLoader::Pass pass = loader.epoch(0);
    const std::optional<Batch> batch = pass.next_blocking();
    const std::size_t before = gate.told().size();
    std::this_thread::sleep_for(200ms);   // the loop computes
    BOOST_TEST(gate.told().size() == before);
    while (pass.next_blocking()) {
    }
    const std::size_t at_end = gate.told().size();
    std::this_thread::sleep_for(200ms);   // the pass is over
    BOOST_TEST(gate.told().size() == at_end);
}

BOOST_AUTO_TEST_CASE(a_second_draw_that_is_refused_does_not_end_the_watch_on_the_first) {
    Bench bench;
    Gate gate{1};
    NumberedSource source{2};   // one batch: nobody waits for another
    std::atomic<bool> refused{false};
    source.before_fill = [&](std::uint64_t) {
        refused.wait(false);
        for (const std::size_t before = gate.told().size(); gate.told().size() == before;)
            std::this_thread::sleep_for(5ms);   // until the first draw's wait is told again
    };
    const SequentialSampler sampler{2};
    DataLoader loader{bench.runtime, source, sampler, watched(gate, 1)};
    DataLoader::Pass pass = loader.epoch(0);
    bool came = false;
    std::exception_ptr error;
    const auto draw = [&]() -> Awaitable<void> {
        const auto batch = co_await pass.next();
        came = batch.has_value();
    };
    asio::co_spawn(bench.runtime.context(), draw(), [&](std::exception_ptr thrown) { error = thrown; });
    bench.runtime.context().poll();
    BOOST_CHECK_THROW((void)pass.next_blocking(), std::logic_error);
    refused = true;
    refused.notify_all();
    bench.runtime.context().run();
    BOOST_TEST(came);
    BOOST_TEST(!error);
}

/// Knows no path of any sample, in the worst way.
struct Pathless final : NumberedSource {
    using NumberedSource::NumberedSource;
    std::string path(std::uint64_t) const override { throw 1; }
};

BOOST_AUTO_TEST_CASE(a_source_that_throws_for_a_path_is_told_without_it) {
    Bench bench;
    Gate gate{1, "makes sample 0"};
    Pathless source{2};
    source.before_fill = [&](std::uint64_t) { gate.pass(); };
    const SequentialSampler sampler{2};
    DataLoader loader{bench.runtime, source, sampler, watched(gate, 1)};
    DataLoader::Pass pass = loader.epoch(0);
    BOOST_TEST(pass.next_blocking().has_value());
    BOOST_TEST(tells(gate.told().front(), " makes sample 0, for "));
}

BOOST_AUTO_TEST_CASE(a_loader_that_is_destroyed_while_its_loop_waits_tells_nothing_more) {
    Bench bench;
    Gate gate{1};
    std::atomic<bool> released{false};
    NumberedSource source{4};
    source.before_fill = [&](std::uint64_t) { released.wait(false); };
    const SequentialSampler sampler{4};
    std::optional<DataLoader> loader{std::in_place, bench.runtime, source, sampler, watched(gate, 1)};
    std::optional<DataLoader::Pass> pass = loader->epoch(0);
    bool failed = false;
    const auto draw = [&]() -> Awaitable<void> {
        const auto batch = co_await pass->next();
        BOOST_TEST(!batch.has_value());
    };
    asio::co_spawn(bench.runtime.context(), draw(), [&](std::exception_ptr thrown) {
        try {
            if (thrown)
                std::rethrow_exception(thrown);
        } catch (const std::system_error& error) {
            failed = error.code() == asio::error::operation_aborted;
        }
    });
    bench.runtime.context().poll();
    gate.pass();   // the wait was told
    const std::jthread releases{[&] {
        std::this_thread::sleep_for(20ms);   // while the destructor waits for the worker
        released = true;
        released.notify_all();
    }};
    loader.reset();
    const std::size_t told = gate.told().size();
    bench.runtime.context().restart();
    bench.runtime.context().run();
    BOOST_TEST(failed);
    pass.reset();
    std::this_thread::sleep_for(150ms);
    BOOST_TEST(gate.told().size() == told);
}

BOOST_AUTO_TEST_CASE(a_timeout_out_of_range_is_refused_by_name) {
    BOOST_CHECK_EXCEPTION(check_options({.stall_timeout = -1ns}), std::invalid_argument,
                          says("stall_timeout must be at least 0, got -1 ns"));
    BOOST_CHECK_EXCEPTION(check_options({.stall_timeout = 25h}), std::invalid_argument,
                          says("stall_timeout must be at most 24 h, got 90000000000000 ns"));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
