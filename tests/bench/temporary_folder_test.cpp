#include "bench/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "support/temporary_folder.hpp"

namespace drawpoint::bench {
namespace {

namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(temporary_folder)

BOOST_AUTO_TEST_CASE(only_what_a_killed_program_left_is_removed) {
    const test::TemporaryFolder place;
    BOOST_REQUIRE(setenv("TMPDIR", place.path().c_str(), 1) == 0);
    const fs::path of_a_user = place.path() / "drawpoint-bench-of-a-user";
    fs::create_directories(of_a_user / "results");
    std::optional<TemporaryFolder> used{std::in_place};
    const pid_t child = fork();
    if (child == 0) {
        const TemporaryFolder left;
        fs::create_directories(left.path() / "photographs");
        kill(getpid(), SIGKILL);
    }
    BOOST_REQUIRE(waitpid(child, nullptr, 0) == child);
    const auto folders = [&] { return std::distance(fs::directory_iterator{place.path()}, {}); };
    BOOST_TEST(folders() == 3);
    const fs::path before = used->path();
    {
        const TemporaryFolder next;   // removes what the child left
        BOOST_TEST(folders() == 3);
        BOOST_TEST(fs::exists(before));
        BOOST_TEST(fs::exists(of_a_user / "results"));
        BOOST_TEST(next.path() != before);
    }
    used.reset();
    BOOST_TEST(folders() == 1);
    BOOST_TEST(fs::exists(of_a_user / "results"));
    unsetenv("TMPDIR");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint::bench
