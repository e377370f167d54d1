#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include <sched.h>

#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/host/detail/thread_usage.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using namespace std::chrono_literals;
using test::NumberedSource;

void compute(std::int64_t ns) {
    const std::int64_t until = ThreadUsage::cpu_ns() + ns;
    while (ThreadUsage::cpu_ns() < until) {
    }
}

/// Binds this thread, and those it starts, to its first two cores during its lifetime.
class TwoCores {
public:
    TwoCores() {
        ::sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t two;
        CPU_ZERO(&two);
        for (std::size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++core)
            if (CPU_ISSET(core, &before_))
                CPU_SET(core, &two);
        ::sched_setaffinity(0, sizeof two, &two);
    }
    ~TwoCores() { ::sched_setaffinity(0, sizeof before_, &before_); }
    TwoCores(const TwoCores&) = delete;
    TwoCores& operator=(const TwoCores&) = delete;

private:
    cpu_set_t before_{};
};

/// A loader with twice as many workers as cores, whose samples compute or sleep.
struct Loaded {
    static constexpr std::size_t samples = 400;
    const TwoCores two_cores;
    const std::size_t cores = static_cast<std::size_t>(std::ceil(usable_cores()));
    std::atomic<bool> sleeps{false};
    std::mutex mutex;
    std::set<std::thread::id> threads;   // that made samples in the current pass
    NumberedSource source{samples};
    SequentialSampler sampler{samples};
    std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    std::unique_ptr<DataLoader> loader;
    std::size_t epoch = 0;

    Loaded() {
        source.before_fill = [this](std::uint64_t) {
            {
                const std::lock_guard lock{mutex};
                threads.insert(std::this_thread::get_id());
            }
            if (sleeps)
                std::this_thread::sleep_for(200us);
            else
                compute(100'000);
        };
        loader = std::make_unique<DataLoader>(
            runtime, source, sampler, LoaderOptions{.batch_size = 4, .num_workers = 2 * cores, .prefetch_depth = 4});
    }
    std::size_t threads_of_a_pass() {
        threads.clear();   // nobody works between passes, since nothing is prefetched for the next
        std::size_t drawn = 0;
        {
            auto pass = loader->epoch(epoch++, {.next_epoch = false});
            while (const auto batch = pass.next_blocking())
                drawn += batch->size();
        }
        BOOST_TEST(drawn == samples);
        const std::lock_guard lock{mutex};
        return threads.size();
    }
    /// Draws passes until five in a row were made by `wanted` threads, for at most a minute. Returns whether that
    /// happened.
    bool comes_to(std::size_t wanted) {
        const auto latest = std::chrono::steady_clock::now() + 60s;
        std::size_t in_a_row = 0;
        while (in_a_row < 5 && std::chrono::steady_clock::now() < latest)
            in_a_row = threads_of_a_pass() == wanted ? in_a_row + 1 : 0;
        return in_a_row == 5;
    }
};

}   // namespace

BOOST_AUTO_TEST_SUITE(resting_workers)

BOOST_AUTO_TEST_CASE(while_samples_only_compute_no_more_workers_make_them_than_there_are_cores_and_all_once_they_wait) {
    Loaded loaded;
    loaded.sleeps = true;
    BOOST_TEST(loaded.comes_to(2 * loaded.cores));
    loaded.sleeps = false;
    BOOST_TEST(loaded.comes_to(loaded.cores));
    BOOST_TEST(loaded.loader->counters().workers_running == 2 * loaded.cores);
    loaded.sleeps = true;
    BOOST_TEST(loaded.comes_to(2 * loaded.cores));
}

BOOST_AUTO_TEST_CASE(a_loader_whose_workers_rest_can_have_other_numbers_and_ends) {
    Loaded loaded;
    BOOST_TEST(loaded.comes_to(loaded.cores));
    loaded.loader->reconfigure({.num_workers = 1});
    BOOST_TEST(loaded.comes_to(1));
    loaded.loader->reconfigure({.num_workers = 3 * loaded.cores});
    BOOST_TEST(loaded.comes_to(loaded.cores));
    loaded.sleeps = true;
    BOOST_TEST(loaded.comes_to(3 * loaded.cores));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
