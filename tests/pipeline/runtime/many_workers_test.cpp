#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include <time.h>
#include <unistd.h>

#include "pipeline/loader/numbered_source.hpp"
#include "support/sanitized.hpp"

namespace drawpoint {
namespace {

using test::NumberedSource;

constexpr std::size_t workers = 64;
constexpr double most_switches = 1.5;   // of workers, for each wake that was asked for

/// How often these threads of the program gave up their core by themselves.
std::uint64_t voluntary_switches(const std::set<int>& threads) {
    std::uint64_t sum = 0;
    for (const int thread : threads) {
        std::ifstream status{"/proc/self/task/" + std::to_string(thread) + "/status"};
        for (std::string word; status >> word;)
            if (std::uint64_t count = 0; word == "voluntary_ctxt_switches:" && status >> count)
                sum += count;
    }
    return sum;
}

std::set<int> threads_now() {
    std::set<int> found;
    for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"})
        found.insert(std::stoi(task.path().filename()));
    return found;
}

std::uint64_t resident_bytes() {
    std::ifstream statm{"/proc/self/statm"};
    std::uint64_t pages = 0, resident = 0;
    statm >> pages >> resident;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}   // namespace

BOOST_AUTO_TEST_SUITE(many_workers)

BOOST_AUTO_TEST_CASE(a_loader_that_gets_more_workers_starts_only_those_that_are_missing) {
    const auto recorder = std::make_unique<Recorder>();
    Runtime runtime{{}, *recorder};
    const NumberedSource source{64};
    const SequentialSampler sampler{64};
    const std::size_t before = threads_now().size();
    DataLoader loader{runtime, source, sampler, {.num_workers = 2}};
    {
        auto pass = loader.epoch(0);
        BOOST_TEST(pass.next_blocking().has_value());
    }
    loader.reconfigure({.num_workers = 5});
    auto pass = loader.epoch(1);
    BOOST_TEST(pass.next_blocking().has_value());
    BOOST_TEST(threads_now().size() == before + 5);
}

BOOST_AUTO_TEST_CASE(sixty_four_workers_are_sixty_four_threads_that_wake_when_asked_to_and_take_little_memory) {
    for (const WorkerThreads kind : {WorkerThreads::threads, WorkerThreads::arena}) {
        Recorder recorder{{}, AnyClock{SteadyClock{}}};   // rings of the usual size
        Runtime runtime{{.workers = kind}, recorder};
        const std::set<int> before = threads_now();
        NumberedSource source{std::size_t{1} << 16};
        // Work that takes time but no core, so that many workers are at work at once on any machine.
        source.before_fill = [](std::uint64_t) {
            const timespec pause{.tv_sec = 0, .tv_nsec = 200'000};
            ::nanosleep(&pause, nullptr);
        };
        const SequentialSampler sampler{source.size()};
        DataLoader loader{runtime, source, sampler, {.batch_size = 16, .num_workers = workers, .prefetch_depth = 8}};
        const std::uint64_t bytes_before = resident_bytes();
        const auto begin = std::chrono::steady_clock::now();
        auto pass = loader.epoch(0);
        const auto started = std::chrono::steady_clock::now();
        BOOST_TEST(source.fault(*pass.next_blocking(), 0) == "");
        while (loader.counters().workers_running < workers)
            std::this_thread::yield();
        const std::uint64_t bytes = resident_bytes() - std::min(bytes_before, resident_bytes());
        std::set<int> of_workers;
        std::ranges::set_difference(threads_now(), before, std::inserter(of_workers, of_workers.end()));
        BOOST_TEST(of_workers.size() == workers);
        const auto took = std::chrono::duration_cast<std::chrono::microseconds>(started - begin).count();
        BOOST_TEST_MESSAGE("epoch() took " << took << " us; resident memory grew by " << bytes << " bytes");
        if constexpr (!test::sanitized)
            BOOST_TEST(bytes < 12u << 20);   // 64 rings of 1 MiB, stacks, and arenas
        // Drawn slowly, so that workers sleep and are woken for every batch. On a busy machine a thread may also wait
        // for the loader's mutex, whose owner lost its core: the best of three rounds counts.
        double fewest = 1e9;
        for (int round = 0; round < 3 && fewest > most_switches; ++round) {
            const LoaderCounters from = loader.counters();
            const std::uint64_t switches_from = voluntary_switches(of_workers), fills_from = source.fills;
            for (int batch = 0; batch < 300; ++batch) {
                BOOST_TEST(source.fault(*pass.next_blocking(), 0) == "");
                std::this_thread::sleep_for(std::chrono::milliseconds{1});
            }
            const auto pauses = static_cast<double>(source.fills - fills_from);   // each is a switch of its own
            const auto switches = static_cast<double>(voluntary_switches(of_workers) - switches_from);
            const auto wakes = static_cast<double>(loader.counters().worker_wakes - from.worker_wakes);
            BOOST_TEST_MESSAGE(switches << " switches, " << pauses << " of them pauses, for " << wakes << " wakes");
            BOOST_TEST(wakes > 300);
            fewest = std::min(fewest, (switches - pauses) / wakes);
        }
        if constexpr (!test::sanitized)   // whose mutexes are slow
            BOOST_TEST(fewest <= most_switches);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
