#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <limits>
#include <memory>
#include <thread>

#include <dlfcn.h>
#include <pthread.h>

#include <drawpoint/pipeline/loader/blocking.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace {

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

// `with_attributes`: oneTBB's threads, whose stack size it sets; std::thread sets no attributes.
std::atomic<std::size_t> living{0}, with_attributes{0}, most{no_limit};

struct Start {
    void* (*function)(void*);
    void* argument;
    bool has_attributes;
};

void* counted(void* start) {
    const std::unique_ptr<Start> mine{static_cast<Start*>(start)};
    void* const result = mine->function(mine->argument);
    with_attributes.fetch_sub(mine->has_attributes ? 1 : 0);
    living.fetch_sub(1);
    return result;
}

}   // namespace

/// Replaces the system's function and limits the number of threads, for this program and every library it loads.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                              void* argument) noexcept {
    static const auto system = reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
    if (living.fetch_add(1) >= most) {
        living.fetch_sub(1);
        return EAGAIN;
    }
    const bool has_attributes = attributes != nullptr;
    with_attributes.fetch_add(has_attributes ? 1 : 0);
    return system(thread, attributes, counted, new Start{function, argument, has_attributes});
}

namespace drawpoint {
namespace {

using test::NumberedSource;

constexpr std::size_t workers = 4;

struct Counts {
    std::uint64_t workers;   // the loader's
    std::size_t tbb;         // oneTBB's
};

/// The numbers of threads of a loader that asks for `workers` when the system allows `threads`, once it has delivered
/// every sample and the workers have begun, or had a minute to do so.
Counts counts_of(WorkerThreads kind, std::size_t threads) {
    const std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime{{.workers = kind, .record = false}, *recorder};
    const NumberedSource source{64};
    const SequentialSampler sampler{64};
    most = living + threads;
    DataLoader loader{runtime, source, sampler, {.batch_size = 2, .num_workers = workers}};
    std::size_t samples = 0;
    for (auto& batch : blocking(loader)) {
        BOOST_TEST(source.fault(batch, 0) == "");
        samples += batch.size();
    }
    BOOST_TEST(samples == 64u);
    const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes{1};
    while (loader.counters().workers_running < std::min(threads, workers) && std::chrono::steady_clock::now() < latest)
        std::this_thread::yield();   // they begin when they are scheduled
    most = no_limit;
    return {loader.counters().workers_running, with_attributes};
}

}   // namespace

BOOST_AUTO_TEST_SUITE(few_threads)

// In this order, since oneTBB keeps its threads once it has them.
BOOST_AUTO_TEST_CASE(a_loader_has_as_many_workers_as_the_system_has_threads_for_and_gives_every_sample) {
    for (const WorkerThreads kind : {WorkerThreads::threads, WorkerThreads::arena})
        for (std::size_t threads = 0; threads < 2 * workers; ++threads) {
            const Counts counts = counts_of(kind, threads);
            BOOST_TEST(counts.workers == std::min(threads, workers), threads << " threads: " << counts.workers);
            BOOST_TEST(counts.tbb == 0u, threads << " threads, " << counts.tbb << " of oneTBB");
        }
}

BOOST_AUTO_TEST_CASE(a_loader_that_is_to_have_more_has_as_many_as_the_system_has_threads_for) {
    const std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime{{.workers = WorkerThreads::threads, .record = false}, *recorder};
    const NumberedSource source{64};
    const SequentialSampler sampler{64};
    DataLoader loader{runtime, source, sampler, {.batch_size = 2, .num_workers = 1}};
    const auto comes_to = [&](std::uint64_t wanted) {
        const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes{1};
        while (loader.counters().workers_running != wanted && std::chrono::steady_clock::now() < latest)
            std::this_thread::yield();
        return loader.counters().workers_running == wanted;
    };
    std::size_t samples = 0;
    auto pass = loader.epoch(0);
    for (const std::size_t threads : {0u, 1u, 2u}) {   // threads that the system allows beyond the existing ones
        most = living + threads;
        loader.reconfigure({.num_workers = 4});
        most = no_limit;
        BOOST_TEST(comes_to(threads == 2 ? 4u : 1u + threads));
        samples += pass.next_blocking()->size();
    }
    while (const auto batch = pass.next_blocking())
        samples += batch->size();
    BOOST_TEST(samples == 64u);
}

BOOST_AUTO_TEST_CASE(an_arena_is_used_where_the_system_has_twice_the_threads) {
    const bool has_tbb = ::dlsym(RTLD_DEFAULT, "TBB_runtime_interface_version") != nullptr;
    const Counts counts = counts_of(WorkerThreads::arena, 2 * workers);
    BOOST_TEST(counts.workers == workers);
    BOOST_TEST((has_tbb ? counts.tbb >= workers : counts.tbb == 0), counts.tbb << " threads of oneTBB");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
