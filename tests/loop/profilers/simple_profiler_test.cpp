#include <drawpoint/loop/profilers/simple.hpp>

#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace {

using namespace drawpoint;
using namespace std::chrono_literals;

std::vector<std::string> regions_of(const Ledger& ledger) {
    std::vector<std::string> all;
    for (const OperatorRow& row : ledger.operators)
        all.push_back(ledger.names.at(row.name) + " " + std::to_string(row.begin_ns) + "+" + std::to_string(row.ns));
    return all;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(simple_profiler)

BOOST_AUTO_TEST_CASE(calls_and_totals_are_exact_beyond_the_durations_it_keeps) {
    ManualClock clock;
    SimpleProfiler profiler{{}, {}, AnyClock{clock}};
    const std::size_t calls = SimpleProfiler::kept_durations + 1000;
    for (std::size_t i = 0; i < calls; ++i) {
        profiler.start("a");
        clock.advance(1s);
        profiler.stop("a");
    }
    BOOST_TEST(profiler.durations("a").size() == SimpleProfiler::kept_durations);
    const LightningProfile values = profiler.profile_values();
    BOOST_TEST(values.actions.at(0).calls == calls);
    BOOST_TEST(values.actions.at(0).total_s == static_cast<double>(calls));
}

BOOST_AUTO_TEST_CASE(a_sum_is_rounded_once) {
    ExactSum cancelling;
    for (const double value : {1e16, 1.0, -1e16})
        cancelling.add(value);
    BOOST_TEST(cancelling.value() == 1.0);
    ExactSum tenths;
    for (int i = 0; i < 10; ++i)
        tenths.add(0.1);
    BOOST_TEST(tenths.value() == 1.0);
    ExactSum half;   // 1 + 2^-53 lies halfway between two doubles; the smaller terms decide the rounding
    for (const double value : {1.0, 0x1p-53, 0x1p-106})
        half.add(value);
    BOOST_TEST(half.value() == 1.0 + 0x1p-52);
    ExactSum infinite;
    infinite.add(1);
    infinite.add(std::numeric_limits<double>::infinity());
    BOOST_TEST(std::isinf(infinite.value()));
}

BOOST_AUTO_TEST_CASE(a_sum_does_not_depend_on_the_order_of_its_addends) {
    std::mt19937_64 random{7};
    std::vector<double> values;
    for (int i = 0; i < 1000; ++i)
        values.push_back(
            std::ldexp(static_cast<double>(random() % 2000) - 1000, static_cast<int>(random() % 120) - 60));
    ExactSum one;
    for (const double value : values)
        one.add(value);
    std::shuffle(values.begin(), values.end(), random);
    ExactSum other;
    for (const double value : values)
        other.add(value);
    BOOST_TEST(one.value() == other.value());
}

BOOST_AUTO_TEST_CASE(with_a_recorder_every_action_is_a_region_of_its_name) {
    ManualClock clock{1000};
    Recorder recorder{RecorderOptions{}, AnyClock{clock}};
    SimpleProfiler profiler{recorder};
    {
        const auto outer = profiler.profile("outer");
        clock.advance(10ns);
        const auto inner = profiler.profile("inner");
        clock.advance(5ns);
    }
    const std::vector<std::string> expected{"outer 1000+15", "inner 1010+5"};
    BOOST_TEST(regions_of(recorder.ledger()) == expected, boost::test_tools::per_element());
    BOOST_TEST(profiler.profile_values().actions.size() == 2u);
}

BOOST_AUTO_TEST_CASE(regions_nest_even_where_actions_do_not) {
    ManualClock clock{1000};
    Recorder recorder{RecorderOptions{}, AnyClock{clock}};
    SimpleProfiler profiler{recorder};
    profiler.start("a");
    clock.advance(10ns);
    profiler.start("b");
    clock.advance(10ns);
    profiler.stop("a");
    clock.advance(10ns);
    profiler.stop("b");
    const std::vector<std::string> expected{"a 1000+20", "b 1010+10", "b 1020+10"};
    BOOST_TEST(regions_of(recorder.ledger()) == expected, boost::test_tools::per_element());
    BOOST_TEST(profiler.durations("b").size() == 1u);
    BOOST_TEST(profiler.durations("b")[0] == 20e-9, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_SUITE_END()
