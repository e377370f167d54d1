#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;

constexpr std::array both_kinds{WorkerThreads::threads, WorkerThreads::arena};

/// Sets the scheduling policy of a thread, by default the calling one. False: the system refuses.
bool become(int policy, int thread = 0) {
    const sched_param parameters{};
    return ::sched_setscheduler(thread, policy, &parameters) == 0;
}

/// The policy that workers should have if the thread that starts them has the usual one.
int of_workers() {
    bool allowed = false;
    std::thread{[&] { allowed = become(SCHED_BATCH); }}.join();
    if (!allowed)
        BOOST_TEST_MESSAGE("this system refuses SCHED_BATCH: workers stay SCHED_OTHER");
    return allowed ? SCHED_BATCH : SCHED_OTHER;
}

/// The policies of all threads of this program, by thread id.
std::map<int, int> policies() {
    std::map<int, int> found;
    for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
        const int id = std::atoi(task.path().filename().c_str());
        if (const int policy = ::sched_getscheduler(id); policy >= 0)   // otherwise the thread has just ended
            found[id] = policy;
    }
    return found;
}

/// The policies under which the samples of a pass were made, one bit each.
unsigned policies_of_workers(Bench& bench, std::size_t workers = 2) {
    std::atomic<unsigned> seen{0};
    NumberedSource source{64};
    source.before_fill = [&seen](std::uint64_t) { seen.fetch_or(1u << ::sched_getscheduler(0)); };
    const SequentialSampler sampler{64};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = workers}};
    auto pass = loader.epoch(0);
    while (const auto batch = pass.next_blocking())
        BOOST_TEST(source.fault(*batch, 0) == "");
    return seen;
}

/// Precondition: workers get the batch policy only if the thread that starts them has the usual one.
boost::test_tools::assertion_result started_as_usual(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result result{::sched_getscheduler(0) == SCHED_OTHER};
    result.message() << "this program was started under a policy other than SCHED_OTHER";
    return result;
}

BOOST_AUTO_TEST_SUITE(worker_scheduling, *boost::unit_test::precondition(started_as_usual))

BOOST_AUTO_TEST_CASE(a_worker_makes_its_samples_as_a_batch_thread_and_the_loop_stays_a_usual_one) {
    const unsigned expected = 1u << of_workers();
    for (const WorkerThreads kind : both_kinds) {
        Bench bench{false, kind};
        BOOST_TEST(policies_of_workers(bench) == expected);
        BOOST_TEST(::sched_getscheduler(0) == SCHED_OTHER);
        BOOST_TEST(policies_of_workers(bench, 0) == 1u << SCHED_OTHER);   // made by the loop's own thread
    }
}

/// The slice of a thread with the usual policy, in ns; 0: the system does not report it.
std::uint64_t slice_ns(int thread = 0) {
    std::array<std::uint64_t, 6> attributes{};   // struct sched_attr: sched_runtime is the fourth
    return ::syscall(SYS_sched_getattr, thread, attributes.data(), sizeof attributes, 0u) == 0 ? attributes[3] : 0;
}

BOOST_AUTO_TEST_CASE(workers_have_long_slices_and_the_loop_its_own) {
    const std::uint64_t before_ns = slice_ns();
    if (before_ns == 0)
        BOOST_TEST_MESSAGE("this system knows no slices");
    for (const WorkerThreads kind : both_kinds) {
        Bench bench{false, kind};
        std::atomic<std::uint64_t> of_workers_ns{0};
        NumberedSource source{16};
        source.before_fill = [&](std::uint64_t) { of_workers_ns = slice_ns(); };
        const SequentialSampler sampler{16};
        DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 2}};
        auto pass = loader.epoch(0);
        while (const auto batch = pass.next_blocking())
            BOOST_TEST(source.fault(*batch, 0) == "");
        if (of_workers() == SCHED_BATCH)   // otherwise they inherit their slice
            BOOST_TEST(of_workers_ns == (before_ns == 0 ? 0 : 10'000'000));
        BOOST_TEST(slice_ns() == before_ns);
    }
}

/// The slices of all threads, by thread id.
std::map<int, std::uint64_t> slices() {
    std::map<int, std::uint64_t> found;
    for (const auto& [thread, policy] : policies())
        if (const std::uint64_t ns = slice_ns(thread); ns != 0)
            found[thread] = ns;
    return found;
}

BOOST_AUTO_TEST_CASE(once_a_crew_has_joined_every_thread_of_the_program_is_a_usual_one_again) {
    const std::uint64_t before_ns = slice_ns();
    for (const WorkerThreads kind : both_kinds) {
        Bench bench{false, kind};
        for (int round = 0; round < 3; ++round) {
            (void)policies_of_workers(bench, 4);
            for (const auto& [thread, policy] : policies())
                BOOST_TEST(policy == SCHED_OTHER, "thread " << thread << " has policy " << policy);
            for (const auto& [thread, ns] : slices())
                BOOST_TEST(ns == before_ns, "thread " << thread << " has a slice of " << ns << " ns");
        }
    }
}

BOOST_AUTO_TEST_CASE(a_policy_that_the_program_chose_is_left_alone) {
    for (const WorkerThreads kind : both_kinds)
        for (const int chosen : {SCHED_IDLE, SCHED_BATCH}) {
            bool allowed = false;
            unsigned of_samples = 0;
            int after = -1;
            const std::map<int, int> before = policies();
            std::thread{[&] {
                sched_param parameters{};
                allowed = ::pthread_setschedparam(::pthread_self(), chosen, &parameters) == 0;
                Bench bench{false, kind};
                of_samples = policies_of_workers(bench);
                after = ::sched_getscheduler(0);
            }}.join();
            if (!allowed) {
                BOOST_TEST_MESSAGE("this system refuses policy " << chosen);
                BOOST_TEST(after == SCHED_OTHER);
                continue;
            }
            BOOST_TEST(after == chosen);
            BOOST_TEST(of_samples == 1u << chosen);
            for (const auto& [thread, policy] : policies())
                if (const auto was = before.find(thread); was != before.end())
                    BOOST_TEST(policy == was->second, "thread " << thread << " has policy " << policy);
        }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
