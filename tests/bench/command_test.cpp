#include <drawpoint/bench/experiment/command.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_folder.hpp"

namespace drawpoint::bench {
namespace {

using namespace std::chrono_literals;

enum : std::size_t { wall_time, cpu_time, faults, switches };

std::string reason_of(const std::string& line) {
    try {
        (void)make_command("it", line)->take_turn(1);
    } catch (const NotRun& reason) {
        return reason.what();
    }
    return "";
}

}   // namespace

BOOST_AUTO_TEST_SUITE(command)

BOOST_AUTO_TEST_CASE(a_run_measures_the_process_and_those_it_waited_for) {
    const auto sleeps = make_command("it", "sleep 0.05")->take_turn(1).values;
    BOOST_TEST(sleeps.size() == make_command("it", "true")->metrics().size());
    BOOST_TEST(sleeps[wall_time] >= 0.05);
    BOOST_TEST(sleeps[cpu_time] < sleeps[wall_time]);
    BOOST_TEST(sleeps[faults] > 10);
    const auto burns =
        make_command("it", "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; true")->take_turn(1).values;
    BOOST_TEST(make_command("it", "sleep 0.05")->take_turn(3).values[faults] < 2 * sleeps[faults]);   // the mean
    const auto idles = make_command("it", "true")->take_turn(1).values;
    BOOST_TEST(burns[cpu_time] > 3 * idles[cpu_time]);
}

BOOST_AUTO_TEST_CASE(words_are_run_directly_and_what_needs_a_shell_by_one) {
    const test::TemporaryFolder folder;
    const auto touches = [&](const std::string& line, const std::string& file) {
        (void)make_command("it", line)->take_turn(1);
        return std::filesystem::exists(folder / file);
    };
    BOOST_TEST(touches("  touch \t" + folder.file("a") + " ", "a"));
    BOOST_TEST(touches("true && touch " + folder.file("b"), "b"));
    BOOST_TEST(reason_of("touch no-such-folder/x; exit 4").find("exit code 4") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_run_that_fails_says_how_and_what_it_wrote_last) {
    BOOST_TEST(reason_of("echo first >&2; echo why it broke >&2; exit 3") ==
               "it: echo first >&2; echo why it broke >&2; exit 3 ended with exit code 3: why it broke");
    BOOST_TEST(reason_of("kill -9 $$") == "it: kill -9 $$ was ended by signal 9");
    BOOST_TEST(reason_of("no-such-program x").find("no-such-program: No such file") != std::string::npos);
    BOOST_CHECK_THROW((void)make_command("it", "  "), NotRun);
    BOOST_TEST(reason_of("true") == "");
}

BOOST_AUTO_TEST_CASE(a_command_may_report_numbers_of_its_own) {
    const auto it =
        make_command("it", "echo warming up; echo '{\"step\": 0.5, \"note\": \"x\", \"bytes\": 7}'", Reports::numbers);
    it->prepare();
    BOOST_REQUIRE(it->metrics().size() == 2u);
    BOOST_TEST(it->metrics()[1].name == "bytes");
    BOOST_TEST(it->metrics()[1].compared);
    BOOST_TEST(it->take_turn(2).values == (std::vector<double>{0.5, 7}), boost::test_tools::per_element());
    BOOST_CHECK_THROW(make_command("it", "echo hello", Reports::numbers)->prepare(), NotRun);
    BOOST_CHECK_THROW(make_command("it", "echo '{\"step\": 0}'", Reports::numbers)->prepare(), NotRun);

    const test::TemporaryFolder folder;   // the second run reports something else
    const auto fickle = make_command(
        "it", "echo '{\"'a$(wc -l < " + folder.file("f") + ")'\": 1}'; echo >> " + folder.file("f"), Reports::numbers);
    fickle->prepare();
    BOOST_CHECK_THROW((void)fickle->take_turn(1), NotRun);
}

BOOST_AUTO_TEST_CASE(google_benchmarks_report_the_mean_of_repetitions_in_seconds) {
    const test::TemporaryFolder folder;
    std::ofstream{folder.file("out.json")} << R"({"context": {}, "benchmarks": [
      {"name": "sort/8", "run_type": "iteration", "real_time": 2.0, "cpu_time": 1.0, "time_unit": "us"},
      {"name": "sort/8", "run_type": "iteration", "real_time": 4.0, "cpu_time": 1.0, "time_unit": "us"},
      {"name": "sort/8_mean", "run_name": "sort/8", "run_type": "aggregate", "real_time": 9.0, "time_unit": "us"},
      {"name": "find", "run_type": "iteration", "real_time": 7.0, "cpu_time": 6.0, "time_unit": "ns"}]})";
    const auto it = make_command("it", "cat " + folder.file("out.json"), Reports::google_benchmark);
    it->prepare();
    BOOST_REQUIRE(it->metrics().size() == 4u);
    BOOST_TEST(it->metrics()[0].name == "sort/8 real_time");
    const auto values = it->take_turn(1).values;
    BOOST_TEST(values[0] == 3e-6, boost::test_tools::tolerance(1e-12));
    BOOST_TEST(values[3] == 6e-9, boost::test_tools::tolerance(1e-12));
    std::ofstream{folder.file("failed.json")} << R"({"context": {}, "benchmarks": [
      {"name": "sort/8", "run_type": "iteration", "real_time": 2.0, "cpu_time": 1.0, "time_unit": "us"},
      {"name": "find", "run_type": "iteration", "error_occurred": true, "error_message": "no index"}]})";
    const auto failed = make_command("it", "cat " + folder.file("failed.json"), Reports::google_benchmark);
    BOOST_CHECK_EXCEPTION(failed->prepare(), NotRun, [](const NotRun& reason) {
        return std::string{reason.what()} == "it: find failed: no index";
    });
    for (const std::string output : {"{}", "no JSON", "{\"benchmarks\": [1]}"})
        BOOST_CHECK_THROW(make_command("it", "echo '" + output + "'", Reports::google_benchmark)->prepare(), NotRun);
}

BOOST_AUTO_TEST_CASE(output_is_discarded_and_there_is_no_input) {
    BOOST_TEST(reason_of("cat; head -c 1000000 /dev/zero") == "");
    BOOST_TEST(reason_of("head -c 1000000 /dev/zero >&2; exit 1").size() < 5000u);
}

BOOST_AUTO_TEST_CASE(a_cancelled_run_ends_at_once_with_all_it_started_and_no_other_begins) {
    const test::TemporaryFolder folder;
    const auto contender = make_command("it", "touch " + folder.file("begun") + "; (sleep 1; touch " +
                                                  folder.file("late") + ") & sleep 600");
    auto running = std::async(std::launch::async, [&] { return contender->take_turn(1).values; });
    while (!std::filesystem::exists(folder / "begun"))
        std::this_thread::sleep_for(1ms);
    contender->cancel();
    BOOST_CHECK_THROW(running.get(), Cancelled);
    BOOST_CHECK_THROW((void)contender->take_turn(1), Cancelled);
    std::this_thread::sleep_for(1200ms);
    BOOST_TEST(!std::filesystem::exists(folder / "late"));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint::bench
