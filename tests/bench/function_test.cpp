#include <drawpoint/bench/experiment/experiment.hpp>
#include <drawpoint/bench/experiment/function.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace drawpoint::bench {

BOOST_AUTO_TEST_SUITE(function)

BOOST_AUTO_TEST_CASE(a_turn_calls_the_function_so_often_and_gives_means) {
    using namespace std::chrono_literals;
    std::size_t calls = 0;
    const auto sleeps = make_function("it", [&] {
        ++calls;
        std::this_thread::sleep_for(5ms);
    });
    const std::vector<double> slept = sleeps->take_turn(4).values;
    BOOST_TEST(calls == 4u);
    BOOST_TEST(slept[0] >= 0.005);
    BOOST_TEST(slept[1] < slept[0]);   // CPU time
    BOOST_TEST(slept[3] >= 1);         // a switch a call
    const std::vector<double> nothing = make_function("it", [] {})->take_turn(1).values;
    BOOST_TEST(nothing[0] > 0);
    BOOST_TEST(nothing[1] > 0);
}

BOOST_AUTO_TEST_CASE(a_function_that_does_more_is_slower_and_one_that_throws_ends_the_turn) {
    volatile double sum = 0;
    const auto adds = [&](int times) {
        return [&sum, times] {
            for (int i = 0; i < times; ++i)
                sum = sum + i;
        };
    };
    std::vector<std::unique_ptr<Contender>> contenders;
    contenders.push_back(make_function("some", adds(100)));
    contenders.push_back(make_function("more", adds(1000)));
    Experiment experiment{std::move(contenders), {.least_turn = std::chrono::milliseconds{1}}};
    experiment.prepare();
    experiment.calibrate();
    for (int i = 0; i < 30; ++i)
        experiment.run_round();
    for (const Comparison& one : compare(experiment.measurements()))
        BOOST_TEST((one.finding == Finding::slower));
    const auto throws = make_function("it", [] { throw std::runtime_error{"no"}; });
    BOOST_CHECK_THROW((void)throws->take_turn(1), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(a_cancelled_function_takes_no_further_turn) {
    const auto it = make_function("it", [] {});
    it->cancel();
    BOOST_CHECK_THROW((void)it->take_turn(1), Cancelled);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint::bench
