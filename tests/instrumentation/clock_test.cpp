#include <drawpoint/instrumentation/clock.hpp>

#include <boost/test/unit_test.hpp>

#include <optional>
#include <string>
#include <string_view>

#include "instrumentation/clock_source.hpp"

namespace drawpoint {

BOOST_AUTO_TEST_SUITE(clock)

BOOST_AUTO_TEST_CASE(a_manual_clock_moves_only_when_moved) {
    ManualClock manual{5};
    const AnyClock clock{manual};
    BOOST_TEST(clock.now_ns() == 5);
    manual.advance(std::chrono::nanoseconds{7});
    BOOST_TEST(clock.now_ns() == 12);
    BOOST_TEST(clock.name() == std::string("manual"));
}

BOOST_AUTO_TEST_CASE(no_clock_goes_back) {
    for (const AnyClock& clock : {AnyClock{SteadyClock{}}, AnyClock{}}) {
        std::int64_t last = clock.now_ns();
        for (int i = 0; i < 100'000; ++i) {
            const std::int64_t now = clock.now_ns();
            BOOST_REQUIRE_GE(now, last);
            last = now;
        }
    }
}

BOOST_AUTO_TEST_CASE(the_calibrated_counter_stays_between_two_readings_of_the_clock_it_was_calibrated_against) {
    const AnyClock clock;
    // The calibration's error: 2 ms at some parts per million, plus the time between the readings.
    constexpr std::int64_t tolerance_ns = 50'000;
    const std::int64_t before = SteadyClock{}.now_ns(), now = clock.now_ns(), after = SteadyClock{}.now_ns();
    BOOST_TEST(now >= before - tolerance_ns);
    BOOST_TEST(now <= after + tolerance_ns);
}

BOOST_AUTO_TEST_CASE(the_counter_is_a_clock_where_the_kernel_holds_it_for_one_or_does_not_say) {
    struct Kernel {
        std::optional<std::string_view> available, current;
        bool trusts;
    };
    for (const Kernel& kernel :
         // the kernel marked it unstable
         {Kernel{"tsc hpet acpi_pm \n", "tsc\n", true}, Kernel{"hpet acpi_pm \n", "hpet\n", false},
          Kernel{"kvm-clock tsc acpi_pm \n", "kvm-clock\n", true},   // chosen by a virtual machine
          Kernel{"kvm-clock acpi_pm \n", "kvm-clock\n", false},
          Kernel{"hyperv_clocksource_tsc_page acpi_pm\n", "hyperv_clocksource_tsc_page\n", false},
          Kernel{"tsc hpet acpi_pm\n", "acpi_pm\n", false},   // clocksource=acpi_pm, or periodic ticks
          Kernel{std::nullopt, std::nullopt, true}, Kernel{std::nullopt, "hpet\n", false},
          Kernel{"tsc-early\n", "jiffies\n", false}, Kernel{"hpet\n", std::nullopt, false},
          Kernel{"tsc", std::nullopt, true}, Kernel{"", "", false}})
        BOOST_TEST(kernel_trusts_tsc(kernel.available, kernel.current) == kernel.trusts,
                   kernel.available.value_or("(none)") << " / " << kernel.current.value_or("(none)"));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
