#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdio>
#include <string>

#include <drawpoint/instrumentation/report/scale_time.hpp>
#include "golden/replays.hpp"

using drawpoint::scale_time;

namespace {

std::string scientific(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3E s", seconds);
    return text;
}

/// What the original prints, or should print where it fails or scales by the wrong power.
std::string expected(const golden::Json& recorded, double seconds) {
    if (std::isnan(seconds))
        return "nan s";
    if (seconds < 0)
        return "-" + scale_time(-seconds);
    if (std::isinf(seconds))
        return "inf s";
    if (seconds != 0 && (seconds < 1e-24 || seconds >= 1e27))
        return scientific(seconds);
    return recorded.at("out").get<std::string>();
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_scale_time)

BOOST_AUTO_TEST_CASE(every_recorded_duration_is_printed_as_the_original_prints_it) {
    golden::Replays replays{"golden_scale_time"};
    for (const auto& [path, recorded] : golden::documents("g1_scale_time", "durations"))
        for (const golden::Json& one : recorded.at("cases"))
            replays(path, one.at("in").dump(), [&] {
                const double seconds = golden::number(one.at("in"));
                BOOST_TEST(scale_time(seconds) == expected(one, seconds));
            });
}

BOOST_AUTO_TEST_CASE(a_negative_duration_is_its_absolute_value_after_a_minus_sign) {
    BOOST_TEST(scale_time(-1000) == "-1.000ks");
    BOOST_TEST(scale_time(-0.004) == "-4.000ms");
    BOOST_TEST(scale_time(-3.5e-7) == "-350.0ns");
    BOOST_TEST(scale_time(-INFINITY) == "-inf s");
}

BOOST_AUTO_TEST_CASE(a_duration_beyond_the_prefixes_is_printed_with_an_exponent) {
    BOOST_TEST(scale_time(1e27) == "1.000E+27 s");
    BOOST_TEST(scale_time(9.9e-25) == "9.900E-25 s");
    BOOST_TEST(scale_time(5e-324) == "4.941E-324 s");
    BOOST_TEST(scale_time(1e26) == "100.0Ys");
    BOOST_TEST(scale_time(INFINITY) == "inf s");
    BOOST_TEST(scale_time(NAN) == "nan s");
}

BOOST_AUTO_TEST_SUITE_END()
