#include <drawpoint/loop/profilers/xla.hpp>

#include <cstdlib>
#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include "support/temporary_folder.hpp"

namespace {

using namespace drawpoint;

std::vector<std::string> regions_of(const Ledger& ledger) {
    std::vector<std::string> all;
    for (const OperatorRow& row : ledger.operators)
        if (row.ended)
            all.push_back(ledger.names.at(row.name));
    return all;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(xla_profiler)

BOOST_AUTO_TEST_CASE(five_hooks_are_regions_the_evaluating_ones_numbered_and_others_are_none) {
    ManualClock clock;
    Recorder recorder{RecorderOptions{}, AnyClock{clock}};
    XlaProfiler profiler{recorder};
    for (const char* action :
         {"run_training_batch", "[Strategy]SingleDeviceStrategy.training_step", "backward", "validation_step",
          "validation_step", "test_step", "predict_step", "training_step_end"}) {
        const auto timed = profiler.profile(action);
        clock.advance(std::chrono::nanoseconds{1});
    }
    const std::vector<std::string> expected{"[Strategy]SingleDeviceStrategy.training_step",
                                            "backward",
                                            "validation_step#1",
                                            "validation_step#2",
                                            "test_step#1",
                                            "predict_step#1"};
    BOOST_TEST(regions_of(recorder.ledger()) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(stopping_what_never_started_is_no_error) {
    Recorder recorder;
    XlaProfiler profiler{recorder};
    profiler.stop("training_step");
    BOOST_TEST(regions_of(recorder.ledger()).empty());
}

BOOST_AUTO_TEST_CASE(a_port_needs_a_recording_and_the_program_that_answers) {
    const auto names = [](const char* text) {
        return [text](const std::exception& error) {
            return std::string_view{error.what()}.find(text) != std::string_view::npos;
        };
    };
    Recorder without_file;
    BOOST_CHECK_EXCEPTION((XlaProfiler{without_file, 9012}), std::invalid_argument, names("port 9012"));
    const test::TemporaryFolder folder;
    Recorder recorder{folder / "run.pftrace"};
    BOOST_CHECK_EXCEPTION((XlaProfiler{recorder, 70'000}), std::invalid_argument, names("port 70000"));
    ::setenv("DRAWPOINT_SERVE", "/no/drawpoint-serve", 1);
    BOOST_CHECK_EXCEPTION((XlaProfiler{recorder, 9012}), std::runtime_error, names("/no/drawpoint-serve"));
    ::setenv("DRAWPOINT_SERVE", "/bin/false", 1);   // ends without a word
    BOOST_CHECK_EXCEPTION((XlaProfiler{recorder, 9012}), std::runtime_error, names("does not start"));
    ::unsetenv("DRAWPOINT_SERVE");
}

BOOST_AUTO_TEST_SUITE_END()
