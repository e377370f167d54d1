#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <drawpoint/instrumentation/statistics.hpp>

namespace stats = drawpoint::statistics;

namespace {

/// Doubles of 32 different magnitudes, so that the order of additions affects the sum.
std::vector<double> wild_values(std::size_t n) {
    std::vector<double> values(n);
    std::uint64_t state = 1;
    for (double& value : values) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value = std::ldexp(static_cast<double>(state >> 11), -static_cast<int>((state & 31) + 40));
    }
    return values;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(statistics)

BOOST_AUTO_TEST_CASE(sum_mean_and_deviation_equal_numpys_to_the_last_bit) {
    static constexpr struct {
        std::size_t n;
        double sum, mean, std_dev;   // from numpy 2.4.6 for wild_values(n)
    } recorded[] = {
        {1, 0x1.b15dbeb10ff40p-17, 0x1.b15dbeb10ff40p-17, 0x0.0p+0},
        {2, 0x1.71287d1350913p-15, 0x1.71287d1350913p-16, 0x1.30f33b75912e6p-17},
        {7, 0x1.34395d0da2cfep+10, 0x1.60418eeb0336bp+7, 0x1.88b18ddbab59bp+8},
        {8, 0x1.347c5a5558a30p+10, 0x1.347c5a5558a30p+7, 0x1.73dde81fd5da2p+8},
        {9, 0x1.9ff87f7e9d018p+10, 0x1.71c0715419c87p+7, 0x1.692591f54fa0ap+8},
        {15, 0x1.d87738084e419p+10, 0x1.f7f6a22afe23dp+6, 0x1.24b1f1cb21d98p+8},
        {16, 0x1.d87a37f3cea73p+10, 0x1.d87a37f3cea73p+6, 0x1.1d092c42a9c02p+8},
        {17, 0x1.d8b08f28e8e04p+10, 0x1.bce2689ef94b8p+6, 0x1.15e60d933ce24p+8},
        {127, 0x1.fd9548d478992p+14, 0x1.00cc3ce404554p+8, 0x1.d062fab1b8f40p+9},
        {128, 0x1.1bf968c054478p+15, 0x1.1bf968c054478p+8, 0x1.e741cc5cc1399p+9},
        {129, 0x1.1bf968c0f6ae2p+15, 0x1.19c5dd06e8dc6p+8, 0x1.e586441f0679dp+9},
        {136, 0x1.264287b7d6536p+15, 0x1.14f3528ee7d60p+8, 0x1.db1d584494b28p+9},
        {255, 0x1.1169ab59089fcp+16, 0x1.127c27808928fp+8, 0x1.f03da03582100p+9},
        {256, 0x1.159b58c2486acp+16, 0x1.159b58c2486acp+8, 0x1.efe5bbbc9b0d9p+9},
        {257, 0x1.159b58c28fe9cp+16, 0x1.1486d1f09f4a7p+8, 0x1.ef01d1da9dcbdp+9},
        {263, 0x1.1d521a48c19d5p+16, 0x1.15ba042b90a8bp+8, 0x1.ec2f47c978503p+9},
        {1000, 0x1.ef3f464d031c9p+17, 0x1.fb2212bd73d38p+7, 0x1.d7f82da9723c7p+9},
        {1031, 0x1.f57319f8970d4p+17, 0x1.f20b85ce6dcd2p+7, 0x1.d1d011e274508p+9},
        {20000, 0x1.3b53ac9ba0fe0p+22, 0x1.0250d57d7173fp+8, 0x1.d86c40d2cb5b0p+9},
    };
    for (const auto& each : recorded) {
        const std::vector<double> values = wild_values(each.n);
        BOOST_TEST_CONTEXT(each.n << " values") {
            BOOST_TEST(stats::sum(values) == each.sum);
            BOOST_TEST(stats::mean(values) == each.mean);
            BOOST_TEST(stats::population_std_dev(values) == each.std_dev);
        }
    }
}

BOOST_AUTO_TEST_CASE(the_sum_of_wild_values_differs_from_adding_them_one_by_one) {
    const std::vector<double> values = wild_values(1000);
    BOOST_TEST(stats::sum(values) != std::accumulate(values.begin(), values.end(), 0.0));
}

BOOST_AUTO_TEST_CASE(no_values_have_the_sum_zero_and_neither_mean_nor_deviation_nor_quantile) {
    BOOST_TEST(stats::sum({}) == 0);
    BOOST_TEST(std::isnan(stats::mean({})));
    BOOST_TEST(std::isnan(stats::population_std_dev({})));
    BOOST_TEST(std::isnan(stats::quantile({}, 0.5)));
}

BOOST_AUTO_TEST_CASE(a_half_rounds_to_the_even_neighbour) {
    static constexpr double cases[][2] = {{0.5, 0},
                                          {1.5, 2},
                                          {2.5, 2},
                                          {-0.5, 0},
                                          {-1.5, -2},
                                          {-2.5, -2},
                                          {0.49999999999999994, 0},
                                          {2.4, 2},
                                          {2.6, 3},
                                          {-2.6, -3},
                                          {7, 7},
                                          {4503599627370495.5, 4503599627370496.0},
                                          {9007199254740993.0, 9007199254740992.0}};
    for (const auto& [value, whole] : cases)
        BOOST_TEST(stats::round_half_even(value) == whole);
    BOOST_TEST(std::isinf(stats::round_half_even(std::numeric_limits<double>::infinity())));
    BOOST_TEST(std::isnan(stats::round_half_even(std::nan(""))));
}

BOOST_AUTO_TEST_CASE(quantiles_equal_numpys_linear_ones_to_the_last_bit) {
    const std::vector<double> odd = wild_values(11), even = wild_values(10);
    static constexpr struct {
        double q, of_11, of_10;   // from numpy 2.4.6
    } recorded[] = {
        {0, 0x1.004303cdc460ep-19, 0x1.004303cdc460ep-19},   {0.1, 0x1.b15dbeb10ff40p-17, 0x1.8c6fa5514cde0p-17},
        {0.25, 0x1.85fb9058dab1fp-11, 0x1.97a6bbce77a81p-6}, {0.5, 0x1.4bf5c332412f5p-2, 0x1.5ef28fa3dcc5dp-1},
        {0.9, 0x1.adf094a5117a0p+8, 0x1.f46449f21c3e9p+8},   {0.99, 0x1.0a007d169c997p+10, 0x1.0bc3619ef0118p+10},
        {1, 0x1.1b9d6a69df4a9p+10, 0x1.1b9d6a69df4a9p+10},
    };
    for (const auto& each : recorded) {
        BOOST_TEST(stats::quantile(odd, each.q) == each.of_11);
        BOOST_TEST(stats::quantile(even, each.q) == each.of_10);
    }
}

BOOST_AUTO_TEST_CASE(a_quantile_of_one_value_is_that_value) {
    for (const double q : {0.0, 0.5, 0.99, 1.0})
        BOOST_TEST(stats::quantile(std::vector{7.25}, q) == 7.25);
}

BOOST_AUTO_TEST_SUITE_END()
