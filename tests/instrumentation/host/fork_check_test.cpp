#include <drawpoint/instrumentation/host/detail/fork_check.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

namespace drawpoint {
namespace {

BOOST_AUTO_TEST_SUITE(fork_check)

BOOST_AUTO_TEST_CASE(what_was_made_before_a_fork_is_forked_in_the_child_alone) {
    const ForkCheck before;
    BOOST_TEST(!before.is_forked());
    const pid_t child = ::fork();
    if (child == 0) {
        const ForkCheck own;
        ::_exit(before.is_forked() && !own.is_forked() ? 0 : 1);
    }
    BOOST_REQUIRE(child > 0);
    int status = -1;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
    BOOST_TEST(!before.is_forked());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
