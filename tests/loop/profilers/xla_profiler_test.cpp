#include <drawpoint/loop/profilers/xla.hpp>

#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

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

BOOST_AUTO_TEST_CASE(a_port_is_refused_by_name) {
    Recorder recorder;
    BOOST_CHECK_EXCEPTION((XlaProfiler{recorder, 9012}), std::invalid_argument, [](const std::invalid_argument& error) {
        return std::string_view{error.what()}.find("port 9012") != std::string_view::npos;
    });
}

BOOST_AUTO_TEST_SUITE_END()
