#include "pipeline/torch/device_clock.hpp"

#include <cstdint>
#include <random>

#include <boost/test/unit_test.hpp>

namespace drawpoint {
namespace {

BOOST_AUTO_TEST_SUITE(device_clock)

BOOST_AUTO_TEST_CASE(it_takes_the_middle_of_an_attempt_and_says_how_far_off_that_may_be) {
    DeviceClock clock;
    clock.not_before(1'000, 51'000);
    clock.not_after(1'000, 57'000);
    clock.settle();
    BOOST_TEST(clock.host_ns(1'000) == 54'000);
    BOOST_TEST(clock.host_ns(2'000) == 55'000);
    BOOST_TEST(clock.uncertainty_ns() == 3'000);
    clock.not_before(2'000, 51'500);   // says nothing new
    BOOST_TEST(clock.host_ns(2'000) == 55'000);
    clock.not_before(3'000, 57'000);
    BOOST_TEST(clock.host_ns(3'000) == 57'000);   // the least change
    clock.not_after(4'000, 58'500);
    BOOST_TEST(clock.host_ns(4'000) == 58'000);
    BOOST_TEST(clock.uncertainty_ns() == 500);
}

BOOST_AUTO_TEST_CASE(what_contradicts_itself_is_uncertain) {
    DeviceClock clock;
    clock.not_before(0, 100);
    clock.not_after(0, 100);
    clock.settle();
    clock.not_before(10, 1'110);
    BOOST_TEST(clock.uncertainty_ns() == 1'000);
    BOOST_TEST(clock.host_ns(10) == 610);
}

BOOST_AUTO_TEST_CASE(clocks_that_drift_apart_stay_within_what_it_says) {
    for (const double rate : {1 - 40e-6, 1 + 40e-6}) {
        std::mt19937 random{7};
        DeviceClock clock;
        std::int64_t device_ns = 0;
        for (int second = 0; second < 100; ++second)
            for (int step = 0; step < 100; ++step) {
                device_ns += 10'000'000;
                const auto true_ns = static_cast<std::int64_t>(static_cast<double>(device_ns) * rate) + 12345;
                const std::int64_t latency_ns = 2'000 + random() % 4'000;
                clock.not_before(device_ns, true_ns - latency_ns);
                if (step == 0)   // measured once a second
                    clock.not_after(device_ns, true_ns + latency_ns);
                if (second == 0 && step == 0)
                    clock.settle();
                BOOST_REQUIRE(std::abs(clock.host_ns(device_ns) - true_ns) <= clock.uncertainty_ns());
                BOOST_REQUIRE(clock.uncertainty_ns() < 150'000);
            }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
