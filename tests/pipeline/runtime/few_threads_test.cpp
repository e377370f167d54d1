#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <pthread.h>

#if DRAWPOINT_HAS_TBB
#include <oneapi/tbb/parallel_for.h>
#endif

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/sampling/stack_sampler.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>
#include <drawpoint/pipeline/loader/blocking.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"
#include "pipeline/loader/stored_source.hpp"
#include "support/coro_test.hpp"
#include "support/temporary_folder.hpp"

namespace {

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

std::atomic<std::size_t> living{0}, created{0}, most{no_limit};

struct Start {
    void* (*function)(void*);
    void* argument;
};

void* counted(void* start) {
    const std::unique_ptr<Start> mine{static_cast<Start*>(start)};
    void* const result = mine->function(mine->argument);
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
    created.fetch_add(1);
    return system(thread, attributes, counted, new Start{function, argument});
}

namespace drawpoint {
namespace {

using test::NumberedSource;

constexpr std::size_t workers = 4;

/// The number of workers of a loader that asks for `workers` when the system allows `threads`, once it has delivered
/// every sample and the workers have begun, or had a minute to do so.
std::uint64_t workers_of(WorkerThreads kind, std::size_t threads) {
    const std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime{{.workers = kind, .record = false}, *recorder};
    const NumberedSource source{64};
    const SequentialSampler sampler{64};
    most = living + threads;
    const std::size_t before = created;
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
    BOOST_TEST(created - before == loader.counters().workers_running);   // no thread but the workers
    return loader.counters().workers_running;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(few_threads)

BOOST_AUTO_TEST_CASE(a_loader_has_as_many_workers_as_the_system_has_threads_for_and_gives_every_sample) {
    for (const WorkerThreads kind : {WorkerThreads::threads, WorkerThreads::arena})
        for (std::size_t threads = 0; threads < 2 * workers; ++threads) {
            const std::uint64_t there = workers_of(kind, threads);
            BOOST_TEST(there == std::min(threads, workers), threads << " threads: " << there);
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

BOOST_AUTO_TEST_CASE(a_loader_that_reads_ahead_and_is_watched_gives_every_sample_whichever_thread_is_refused) {
    struct Quiet final : StallObserver {
        void stalled(std::string_view) noexcept override {}
    } quiet;
    for (const auto where : {test::StoredSource::In::memory, test::StoredSource::In::files}) {
        const test::StoredSource source{64, where};
        const SequentialSampler sampler{64};
        for (std::size_t threads = 0; threads < 8; ++threads) {
            const std::unique_ptr<Recorder> recorder = test::small_recorder();
            Runtime runtime{{}, *recorder};
            most = living + threads;
            DataLoader loader{runtime,
                              source,
                              sampler,
                              {.batch_size = 4,
                               .num_workers = 2,
                               .read_concurrency = 3,
                               .stall_timeout = std::chrono::milliseconds{50},
                               .on_stall = &quiet}};
            std::vector<std::uint64_t> came;
            for (auto& batch : blocking(loader))
                came.insert(came.end(), batch.indices().begin(), batch.indices().end());
            most = no_limit;
            BOOST_TEST(came.size() == 64u);
            BOOST_TEST(std::ranges::is_sorted(came));
            BOOST_TEST(loader.counters().samples_skipped == 0u);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_recorder_whose_thread_is_refused_throws_and_leaves_the_recording_of_before) {
    const test::TemporaryFolder folder;
    const auto file = folder / "run.pftrace";
    const auto record = [&] {
        Recorder recorder{file};
        recorder.set_fact("here", "yes");
    };
    record();
    most = living.load();
    BOOST_CHECK_EXCEPTION(record(), std::system_error,
                          test::says("the recorder's thread: Resource temporarily unavailable"));
    BOOST_CHECK_THROW(Recorder{}, std::system_error);
    most = no_limit;
    const ReadTrace read = read_trace(file);
    BOOST_TEST(!read.damaged);
    BOOST_TEST(std::ranges::count(read.ledger.facts, std::string{"here"}, &Fact::first) == 1);
    BOOST_TEST(std::distance(std::filesystem::directory_iterator{folder.path()}, {}) == 1);
    record();   // nobody has kept the name
}

BOOST_AUTO_TEST_CASE(a_stack_sampler_whose_thread_is_refused_throws_and_can_be_started_later) {
    const std::unique_ptr<Recorder> recorder = test::small_recorder();
    StackSampler sampler{*recorder, {}};
    most = living.load();
    BOOST_CHECK_THROW(sampler.start(), std::system_error);
    most = no_limit;
    sampler.start();
    sampler.stop();
}

#if DRAWPOINT_HAS_TBB
BOOST_AUTO_TEST_CASE(tbb_code_inside_a_sample_has_its_workers_thread_alone_in_an_arena_and_all_threads_without) {
    for (const WorkerThreads kind : {WorkerThreads::arena, WorkerThreads::threads}) {
        const std::unique_ptr<Recorder> recorder = test::small_recorder();
        Runtime runtime{{.workers = kind, .record = false}, *recorder};
        std::atomic<std::size_t> elsewhere{0};
        NumberedSource source{64};
        source.before_fill = [&](std::uint64_t) {
            const auto here = std::this_thread::get_id();
            oneapi::tbb::parallel_for(0, 64, [&](int) {
                elsewhere += std::this_thread::get_id() != here;
                std::this_thread::sleep_for(std::chrono::microseconds{50});
            });
        };
        const SequentialSampler sampler{64};
        DataLoader loader{runtime, source, sampler, {.batch_size = 8, .num_workers = 1}};
        const std::size_t before = created;
        for (auto& batch : blocking(loader))
            BOOST_TEST(source.fault(batch, 0) == "");
        BOOST_TEST((elsewhere == 0) == (kind == WorkerThreads::arena));
        if (kind == WorkerThreads::arena)
            BOOST_TEST(created - before == 1u);   // TBB starts no thread either
    }
}
#endif

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
