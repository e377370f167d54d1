#include <chrono>
#include <thread>

#include "tests/cli/program.hpp"

namespace {

using namespace drawpoint::test;
using namespace std::chrono_literals;

const std::vector<std::string> endless{
    "profile",      "--data", "synthetic:1000000", "--image-size", "8", "--model", "none",
    "--compute-ms", "5",      "--batch-size",      "16",           "-o"};

std::vector<std::string> endless_to(const TemporaryFolder& folder) {
    std::vector<std::string> all = endless;
    all.push_back(folder.file("run.pftrace"));
    return all;
}

/// The view of a recording, printed once.
std::string view_of(const std::string& run) {
    const Result shown = run_program({"top", "--once", run});
    BOOST_TEST(shown.code == 0, shown.err);
    return shown.out;
}

/// Waits until the view has this text.
bool will_show(const std::string& run, std::string_view text) {
    for (int i = 0; i < 200; ++i, std::this_thread::sleep_for(100ms))
        if (std::filesystem::exists(run) && view_of(run).find(text) != std::string::npos)
            return true;
    return false;
}

BOOST_AUTO_TEST_SUITE(top_command)

BOOST_AUTO_TEST_CASE(a_run_is_shown_while_it_trains_and_told_from_one_that_was_killed) {
    const TemporaryFolder folder;
    const std::string file = folder.file("run.pftrace");
    Program run{endless_to(folder)};
    BOOST_TEST(will_show(file, "train  epoch 1/1"));
    BOOST_TEST(will_show(file, "running"));
    Program lines{{"top", file}};   // its output is no terminal
    std::this_thread::sleep_for(1s);
    run.interrupt(SIGKILL);
    (void)run.wait();
    const Result followed = lines.wait();   // ends by itself
    BOOST_TEST(followed.code == 0, followed.err);
    BOOST_TEST(followed.out.find("samples/s") != std::string::npos, followed.out);
    BOOST_TEST(followed.out.find("ended without its last records") != std::string::npos, followed.out);
    BOOST_TEST(view_of(file).find("ended without its last records") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_run_that_ended_is_shown_as_that) {
    const TemporaryFolder folder;
    const std::string file = folder.file("run.pftrace");
    BOOST_REQUIRE(run_program({"profile", "--data", "synthetic:256", "--image-size", "8", "--model", "none",
                               "--batch-size", "16", "-o", file})
                      .code == 0);
    const std::string view = view_of(file);
    BOOST_TEST(view.find("ended") != view.npos, view);
    BOOST_TEST(view.find("without its last records") == view.npos, view);
    BOOST_TEST(view.find("batch 16/16") != view.npos, view);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_shown_is_named) {
    const TemporaryFolder folder;
    check_complaint(run_program({"top", "--once", folder.file("missing.pftrace")}), 1, {"missing.pftrace"});
    check_complaint(run_program({"top", "--once", "999999999"}), 1, {"999999999"});
    check_complaint(run_program({"top", "--once", "a", "b"}), 2, {"b"});
    check_complaint(run_program({"top", "--color", "blue"}), 2, {"--color", "blue"});
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
