#include "instrumentation/host/children_cpu.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "support/burn_cpu.hpp"

using namespace drawpoint;

namespace {

/// A child that computes for so long, then says so and waits until it is told to end.
struct Computing {
    explicit Computing(std::chrono::milliseconds cpu) {
        BOOST_REQUIRE(::pipe(says_) == 0 && ::pipe(hears_) == 0);
        pid = ::fork();
        if (pid == 0) {
            test::burn_cpu(cpu);
            char byte = 0;
            (void)!::write(says_[1], &byte, 1);
            (void)!::read(hears_[0], &byte, 1);
            ::_exit(0);
        }
        char byte = 0;
        BOOST_REQUIRE(::read(says_[0], &byte, 1) == 1);
    }
    void end() {
        char byte = 0;
        BOOST_REQUIRE(::write(hears_[1], &byte, 1) == 1);
        BOOST_REQUIRE(::waitpid(pid, nullptr, 0) == pid);
        for (const int descriptor : {says_[0], says_[1], hears_[0], hears_[1]})
            ::close(descriptor);
    }
    pid_t pid = 0;

private:
    int says_[2], hears_[2];
};

constexpr std::int64_t ms = 1'000'000;

}   // namespace

BOOST_AUTO_TEST_SUITE(children_cpu)

BOOST_AUTO_TEST_CASE(what_children_compute_counts_while_they_live_and_when_they_are_gone) {
    ChildrenCpu children;
    BOOST_TEST(children.read() == no_stamp);
    Computing first{std::chrono::milliseconds{30}}, second{std::chrono::milliseconds{20}};
    children.add(first.pid);
    children.add(second.pid);
    const std::int64_t both_ns = children.read();
    BOOST_TEST(both_ns >= 50 * ms);
    first.end();
    BOOST_TEST(children.read() >= both_ns);
    second.end();
    BOOST_TEST(children.read() >= both_ns);
}

BOOST_AUTO_TEST_CASE(one_that_came_and_went_between_two_readings_counts) {
    ChildrenCpu children;
    Computing child{std::chrono::milliseconds{30}};
    children.add(child.pid);
    child.end();
    BOOST_TEST(children.read() >= 29 * ms);   // the kernel adds up microseconds
}

BOOST_AUTO_TEST_CASE(no_such_process_counts_nothing) {
    ChildrenCpu children;
    children.add(0x7fff'fff0);
    BOOST_TEST(children.read() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
