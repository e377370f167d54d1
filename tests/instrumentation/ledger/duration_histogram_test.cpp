#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <drawpoint/instrumentation/ledger/detail/duration_histogram.hpp>
#include <drawpoint/instrumentation/statistics.hpp>

using namespace drawpoint;

namespace {

constexpr std::int64_t an_hour = 3'600'000'000'000;

/// A random duration from 1 ns to an hour; every order of magnitude is equally likely.
std::int64_t any_duration(std::mt19937_64& random) {
    return std::llround(
        std::exp(std::uniform_real_distribution<>{0.0, std::log(static_cast<double>(an_hour))}(random)));
}

struct Both {
    std::vector<double> list;
    std::int64_t total_ns = 0;
    DurationHistogram histogram;

    void add(std::int64_t ns) {
        list.push_back(static_cast<double>(ns));
        total_ns += ns;
        histogram.add(ns);
    }
};

void check_alike(const DurationHistogram& histogram, const Both& both) {
    BOOST_TEST_REQUIRE(histogram.calls() == both.list.size());
    BOOST_TEST(histogram.total_ns() == both.total_ns);
    BOOST_TEST(static_cast<double>(histogram.min_ns()) == std::ranges::min(both.list));
    BOOST_TEST(static_cast<double>(histogram.max_ns()) == std::ranges::max(both.list));
    const double std_dev = statistics::population_std_dev(both.list);
    BOOST_TEST(std::abs(histogram.std_dev_ns() - std_dev) <= 1e-12 * std_dev + 1e-6);
    for (const double q : {0.0, 0.01, 0.5, 0.9, 0.99, 1.0}) {
        const double exact = statistics::quantile(both.list, q);
        BOOST_TEST(std::abs(histogram.quantile_ns(q) - exact) <= DurationHistogram::quantile_error_share * exact,
                   "quantile " << q << " of " << both.list.size());
    }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(duration_histogram)

BOOST_AUTO_TEST_CASE(quantiles_of_any_durations_are_within_the_stated_share_and_all_else_is_exact) {
    std::mt19937_64 random{1};
    for (const int count : {1, 2, 3, 10, 101, 5000}) {
        for (int round = 0; round < 20; ++round) {
            Both both;
            for (int i = 0; i < count; ++i)
                both.add(any_duration(random));
            check_alike(both.histogram, both);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_bucket_s_middle_is_within_a_128th_of_whatever_it_holds) {
    std::mt19937_64 random{2};
    const auto check = [](std::int64_t ns) {
        DurationHistogram histogram;
        for (const std::int64_t other : {std::int64_t{0}, ns, std::numeric_limits<std::int64_t>::max() / 4})
            histogram.add(other);
        const auto value = static_cast<double>(ns);
        BOOST_TEST(std::abs(histogram.quantile_ns(0.5) - value) <= (ns < 128 ? 0 : value / 128), ns);
    };
    for (std::int64_t ns = 0; ns <= 1000; ++ns)
        check(ns);
    for (std::int64_t power = 1024; power < 2 * an_hour; power *= 2)
        for (const std::int64_t off : {-1, 0, 1})
            check(power + off);
    for (int i = 0; i < 20'000; ++i)
        check(any_duration(random));
}

BOOST_AUTO_TEST_CASE(adding_a_histogram_adds_what_it_was_given) {
    std::mt19937_64 random{3};
    Both all;
    DurationHistogram sum;
    for (const int count : {0, 1, 700, 3, 0}) {
        Both part;
        for (int i = 0; i < count; ++i) {
            const std::int64_t ns = any_duration(random);
            part.add(ns);
            all.add(ns);
        }
        sum.add(part.histogram);
    }
    check_alike(sum, all);
}

BOOST_AUTO_TEST_CASE(small_deviations_from_a_long_duration_are_not_lost) {
    Both both;
    for (int i = 0; i < 100'000; ++i)
        both.add(an_hour + i % 2);
    BOOST_TEST(std::abs(both.histogram.std_dev_ns() - 0.5) < 1e-3);
}

BOOST_AUTO_TEST_CASE(no_call_has_no_quantile_and_the_longest_duration_has_a_bucket) {
    DurationHistogram histogram;
    BOOST_TEST(std::isnan(histogram.quantile_ns(0.5)));
    BOOST_TEST(histogram.std_dev_ns() == 0.0);
    histogram.add(std::numeric_limits<std::int64_t>::max());
    BOOST_TEST(histogram.max_ns() == std::numeric_limits<std::int64_t>::max());
    BOOST_TEST(histogram.quantile_ns(0.5) == 0x1p63);
}

BOOST_AUTO_TEST_SUITE_END()
