#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include <drawpoint/pipeline/loader/cache_loader.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using namespace std::chrono_literals;
using test::NumberedSource;

/// A loader whose samples are held up until `go`.
struct HeldUp {
    std::atomic<bool> go{false};
    std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    NumberedSource source{30};
    SequentialSampler sampler{30};
    std::unique_ptr<DataLoader> loader;

    explicit HeldUp(LoaderOptions options = {.batch_size = 3, .num_workers = 1, .prefetch_depth = 2}) {
        source.before_fill = [this](std::uint64_t) { go.wait(false); };
        loader = std::make_unique<DataLoader>(runtime, source, sampler, options);
    }
    ~HeldUp() {
        open();
        loader.reset();
    }
    void open() {
        go = true;
        go.notify_all();
    }
};

bool is_readable(int descriptor, std::chrono::milliseconds within) {
    pollfd file{descriptor, POLLIN, 0};
    return ::poll(&file, 1, static_cast<int>(within.count())) == 1;
}

std::vector<std::size_t> rest_of(DataLoader::Pass& pass) {
    std::vector<std::size_t> numbers;
    while (auto batch = pass.next_blocking())
        numbers.push_back(batch->number());
    return numbers;
}

BOOST_AUTO_TEST_SUITE(outside_wait)

BOOST_AUTO_TEST_CASE(a_wait_ends_with_its_time_or_with_the_batch) {
    HeldUp held;
    auto pass = held.loader->epoch(0);
    BOOST_TEST(!pass.wait_for(0ns));
    BOOST_TEST(!pass.wait_for(-5s));
    BOOST_TEST(!pass.wait_for(20ms));
    BOOST_TEST(!pass.try_next().has_value());
    std::thread opens{[&] { held.open(); }};
    BOOST_TEST(pass.wait_for(std::chrono::nanoseconds::max()));
    opens.join();
    auto batch = pass.try_next();
    BOOST_REQUIRE(batch.has_value());
    BOOST_TEST(batch->number() == 0u);
    batch.reset();
    BOOST_TEST(rest_of(pass) == (std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}),
               boost::test_tools::per_element());
    BOOST_TEST(pass.wait_for(0ns));   // the end of the pass is no reason to wait
    BOOST_TEST(!pass.next_blocking().has_value());
}

BOOST_AUTO_TEST_CASE(the_descriptor_is_readable_once_the_batch_is_there) {
    HeldUp held;
    auto pass = held.loader->epoch(0);
    const int descriptor = pass.ready_descriptor();
    BOOST_TEST(!is_readable(descriptor, 0ms));
    BOOST_TEST(!pass.wait_for(0ns));
    BOOST_TEST(!is_readable(descriptor, 20ms));
    held.open();
    BOOST_TEST(is_readable(descriptor, 10'000ms));
    BOOST_TEST(pass.try_next()->number() == 0u);
    BOOST_TEST(pass.ready_descriptor() == descriptor);
    // A program with an event loop draws the rest.
    std::size_t drawn = 1;
    while (drawn < 10)
        if (pass.wait_for(0ns))
            BOOST_TEST(pass.try_next()->number() == drawn++);
        else
            BOOST_TEST(is_readable(descriptor, 10'000ms));
    BOOST_TEST(!is_readable(descriptor, 0ms));
    BOOST_TEST(held.loader->counters().batches_taken == 10u);
}

BOOST_AUTO_TEST_CASE(a_wait_may_be_left_for_a_draw_of_any_kind_or_with_its_pass) {
    for (const int how : {0, 1, 2}) {
        HeldUp held;
        {
            auto pass = held.loader->epoch(0);
            BOOST_TEST(!pass.wait_for(1ms));
            if (how == 0) {
                std::thread opens{[&] {
                    std::this_thread::sleep_for(5ms);
                    held.open();
                }};
                BOOST_TEST(pass.next_blocking()->number() == 0u);
                opens.join();
            } else if (how == 1) {
                std::thread opens{[&] {
                    std::this_thread::sleep_for(5ms);
                    held.open();
                }};
                run(held.runtime, [](DataLoader::Pass& of) -> Awaitable<void> {
                    auto batch = co_await of.next();
                    BOOST_TEST(batch->number() == 0u);
                }(pass));
                opens.join();
            }
        }
        held.open();
        auto pass = held.loader->epoch(1);
        BOOST_TEST(rest_of(pass).size() == 10u, how);
    }
}

BOOST_AUTO_TEST_CASE(a_stop_ends_the_wait) {
    HeldUp held;
    auto pass = held.loader->epoch(0);
    BOOST_TEST(!pass.wait_for(1ms));
    std::thread stops{[&] { held.loader->request_stop(); }};
    BOOST_TEST(pass.wait_for(10s));
    stops.join();
    BOOST_CHECK_THROW((void)pass.next_blocking(), std::system_error);
}

BOOST_AUTO_TEST_CASE(a_signal_ends_the_wait_early) {
    struct sigaction before{}, handles{};
    handles.sa_handler = [](int) {};   // without SA_RESTART, as Python's
    ::sigaction(SIGUSR1, &handles, &before);
    HeldUp held;
    auto pass = held.loader->epoch(0);
    std::atomic<bool> ended{false};
    const pthread_t waits = ::pthread_self();
    std::thread signals{[&] {
        while (!ended) {
            std::this_thread::sleep_for(5ms);
            ::pthread_kill(waits, SIGUSR1);
        }
    }};
    const auto begin = std::chrono::steady_clock::now();
    BOOST_TEST(!pass.wait_for(60s));
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 30s));
    ended = true;
    signals.join();
    ::sigaction(SIGUSR1, &before, nullptr);
}

BOOST_AUTO_TEST_CASE(without_workers_the_wait_makes_the_batch) {
    HeldUp held{{.batch_size = 3, .num_workers = 0}};
    held.open();
    auto pass = held.loader->epoch(0);
    BOOST_TEST(pass.wait_for(0ns));
    BOOST_TEST(pass.try_next()->number() == 0u);
}

BOOST_AUTO_TEST_CASE(waits_with_workers_that_race_lose_no_batch) {
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    const NumberedSource source{40'000};
    const SequentialSampler sampler{40'000};
    DataLoader loader{runtime, source, sampler, {.batch_size = 4, .num_workers = 2, .prefetch_depth = 2}};
    auto pass = loader.epoch(0);
    std::size_t drawn = 0, waits = 0;
    while (drawn < 10'000) {
        if (!pass.wait_for(0ns)) {
            ++waits;
            BOOST_REQUIRE(is_readable(pass.ready_descriptor(), 10'000ms));
            continue;
        }
        auto batch = pass.try_next();
        BOOST_REQUIRE(batch.has_value());
        BOOST_REQUIRE(batch->number() == drawn);
        BOOST_REQUIRE(source.fault(*batch, 0) == "");
        ++drawn;
    }
    BOOST_TEST_MESSAGE(waits << " waits");
}

BOOST_AUTO_TEST_CASE(a_pass_may_begin_at_a_batch) {
    for (const std::size_t workers : {0u, 2u})
        for (const OrderRule order : {OrderRule::in_order(), OrderRule::out_of_order()}) {
            HeldUp held{{.batch_size = 3, .num_workers = workers, .prefetch_depth = 2, .order = order}};
            std::atomic<std::uint64_t> lowest{100};
            held.source.before_fill = [&lowest](std::uint64_t index) {
                for (std::uint64_t seen = lowest; index < seen && !lowest.compare_exchange_weak(seen, index);) {
                }
            };
            {
                auto pass = held.loader->epoch(0, {.first_batch = 7});
                BOOST_TEST(pass.drawn() == 7u);
                std::vector<std::size_t> numbers = rest_of(pass);
                std::ranges::sort(numbers);
                BOOST_TEST(numbers == (std::vector<std::size_t>{7, 8, 9}), boost::test_tools::per_element());
                BOOST_TEST(lowest == 21u);   // no sample before the position was made
            }
            {
                auto pass = held.loader->epoch(1, {.next_epoch = true});
                BOOST_TEST(rest_of(pass).size() == 10u);
            }
            {   // what was prefetched is not of use, but no batch is missing
                auto pass = held.loader->epoch(2, {.first_batch = 1});
                BOOST_TEST(rest_of(pass).size() == 9u);
            }
            {
                auto pass = held.loader->epoch(3, {.first_batch = 10});
                BOOST_TEST(rest_of(pass).empty());
            }
            BOOST_CHECK_THROW((void)held.loader->epoch(4, {.first_batch = 11}), std::invalid_argument);
            auto pass = held.loader->epoch(4);
            BOOST_TEST(rest_of(pass).size() == 10u);
        }
}

BOOST_AUTO_TEST_CASE(a_cache_of_batches_begins_at_the_first) {
    HeldUp held;
    held.open();
    CacheLoader cache{*held.loader, 2};
    BOOST_CHECK_THROW((void)cache.epoch(0, {.first_batch = 1}), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
