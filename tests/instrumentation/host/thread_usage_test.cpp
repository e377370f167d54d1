#include <drawpoint/instrumentation/host/detail/thread_usage.hpp>

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <thread>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include "support/burn_cpu.hpp"

using namespace drawpoint;
using namespace std::chrono_literals;

namespace {

/// The calling thread's time in the run queue, read in another way.
std::int64_t run_queue_ns() {
    std::ifstream file{"/proc/thread-self/schedstat"};
    std::int64_t on_core = 0, waiting = no_stamp;
    file >> on_core >> waiting;
    return waiting;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(thread_usage)

BOOST_AUTO_TEST_CASE(cpu_time_is_what_the_thread_computed) {
    const std::int64_t before = test::thread_cpu_ns(), first = ThreadUsage::cpu_ns();
    test::burn_cpu(2ms);
    const std::int64_t second = ThreadUsage::cpu_ns(), after = test::thread_cpu_ns();
    BOOST_TEST(second - first >= 2'000'000);
    BOOST_TEST(second - first <= after - before);
}

BOOST_AUTO_TEST_CASE(each_thread_is_read_as_itself) {
    ThreadUsage usage;
    BOOST_TEST(!usage.is_attached());
    const auto check = [&] {
        const std::int64_t before = run_queue_ns(), read = usage.run_queue_ns(), after = run_queue_ns();
        BOOST_TEST(usage.is_attached());
        if (!test::counts_run_queue())
            return;
        BOOST_TEST(before <= read);
        BOOST_TEST(read <= after);
    };
    check();
    std::thread{[&] {
        BOOST_TEST(!usage.is_attached());
        check();
    }}.join();
    BOOST_TEST(!usage.is_attached());
    check();
}

BOOST_AUTO_TEST_SUITE_END()
