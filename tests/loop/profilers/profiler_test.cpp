#include <drawpoint/loop/profilers/profiler.hpp>
#include <drawpoint/loop/profilers/simple.hpp>

#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <boost/test/unit_test.hpp>

#include "support/temporary_folder.hpp"

namespace {

using namespace drawpoint;
using namespace std::chrono_literals;

/// Counts teardowns; has a report if `has_report`.
struct CountedTeardowns final : Profiler {
    CountedTeardowns(ProfilerFiles files, bool has_report) : Profiler{std::move(files)}, reports{has_report} {}
    void start(std::string_view) override {}
    void stop(std::string_view) override {}
    std::string summary() override { return reports ? "report" : throw std::runtime_error("no report"); }
    void teardown(std::string_view stage) override {
        ++teardowns;
        Profiler::teardown(stage);
    }
    bool reports;
    int teardowns = 0;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(profiler)

BOOST_AUTO_TEST_CASE(a_scope_stops_its_action_also_when_an_exception_leaves_it) {
    ManualClock clock;
    SimpleProfiler profiler{{}, {}, AnyClock{clock}};
    try {
        const auto timed = profiler.profile("risky");
        BOOST_TEST(timed.action() == "risky");
        clock.advance(5ms);
        throw std::runtime_error("left");
    } catch (const std::runtime_error&) {
    }
    clock.advance(1s);
    BOOST_REQUIRE_EQUAL(profiler.durations("risky").size(), 1u);
    BOOST_TEST(profiler.durations("risky")[0] == 0.005);
}

BOOST_AUTO_TEST_CASE(an_action_stopped_by_hand_stays_so_at_the_end_of_its_scope) {
    ManualClock clock;
    SimpleProfiler profiler{{}, {}, AnyClock{clock}};
    {
        const auto timed = profiler.profile("a");
        clock.advance(1ms);
        profiler.stop("a");
        clock.advance(1ms);
    }
    BOOST_REQUIRE_EQUAL(profiler.durations("a").size(), 1u);
    BOOST_TEST(profiler.durations("a")[0] == 0.001);
}

BOOST_AUTO_TEST_CASE(each_rank_appends_its_reports_to_a_file_of_its_own) {
    const test::TemporaryFolder folder;
    ManualClock clock;
    for (const int rank : {0, 1}) {
        SimpleProfiler profiler{{folder / "out", "perf"}, {.extended = false}, AnyClock{clock}};
        profiler.setup("fit", rank);
        profiler.start("a");
        profiler.stop("a");
        const std::string report = profiler.summary();
        profiler.describe();
        profiler.describe();
        const std::string name = "out/fit-perf-" + std::to_string(rank) + ".txt";
        BOOST_TEST(test::bytes_in(folder / name) == report + report);
    }
}

BOOST_AUTO_TEST_CASE(without_a_file_name_rank_0_alone_speaks) {
    for (const int rank : {0, 1}) {
        SimpleProfiler profiler{{"somewhere", ""}};
        std::ostringstream out;
        profiler.set_output(out);
        profiler.setup("test", rank, "elsewhere");
        profiler.describe();
        BOOST_TEST(out.str() == (rank == 0 ? "TEST Profiler Report\n\n" : ""));
        BOOST_TEST(profiler.dirpath() == "somewhere");
    }
}

BOOST_AUTO_TEST_CASE(a_report_that_cannot_be_written_is_an_error_naming_the_file) {
    const test::TemporaryFolder folder;
    std::filesystem::create_directories(folder / "fit-perf-0.txt");
    SimpleProfiler profiler{{folder / "", "perf"}};
    profiler.setup("fit");
    BOOST_CHECK_EXCEPTION(profiler.describe(), std::system_error, [](const std::system_error& error) {
        return std::string_view{error.what()}.find("fit-perf-0.txt") != std::string_view::npos;
    });
}

BOOST_AUTO_TEST_CASE(describe_tears_down_once_also_when_there_is_no_report_or_no_folder_for_it) {
    const test::TemporaryFolder folder;
    std::ofstream{folder / "file"} << "in the way";
    CountedTeardowns speechless{{}, false}, homeless{{folder / "file" / "below", "perf"}, true};
    BOOST_CHECK_THROW(speechless.describe(), std::runtime_error);
    BOOST_CHECK_THROW(homeless.describe(), std::system_error);
    BOOST_TEST(speechless.teardowns == 1);
    BOOST_TEST(homeless.teardowns == 1);
}

BOOST_AUTO_TEST_CASE(the_pass_through_profiler_takes_any_call_and_says_nothing) {
    PassThroughProfiler profiler;
    std::ostringstream out;
    profiler.set_output(out);
    profiler.stop("never started");
    const auto timed = profiler.profile("a");
    const auto again = profiler.profile("a");
    profiler.describe();
    BOOST_TEST(out.str().empty());
    BOOST_TEST(profiler.local_rank() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
