#include <drawpoint/diagnosis/paired/symmetry_test.hpp>
#include <drawpoint/diagnosis/tuner/race.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace drawpoint {
namespace {

using Values = std::vector<double>;

/// Of all 2^n ways to give signs to these distances, the share for which `wrong` is true of the signed values.
double share_of_signs(const Values& distances, const std::function<bool(const Values&)>& wrong) {
    const std::uint64_t ways = std::uint64_t{1} << distances.size();
    std::uint64_t count = 0;
    std::vector<double> values(distances.size());
    for (std::uint64_t signs = 0; signs < ways; ++signs) {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = (signs >> i & 1) != 0 ? distances[i] : -distances[i];
        count += wrong(values);
    }
    return static_cast<double>(count) / static_cast<double>(ways);
}

/// Distances as different as they come: equal, growing, shrinking, with outliers, with ties and zeros.
std::vector<std::vector<double>> all_kinds_of_distances(std::size_t count) {
    std::vector<std::vector<double>> all(6, std::vector<double>(count));
    std::mt19937_64 random{5};
    std::cauchy_distribution<double> heavy;
    for (std::size_t i = 0; i < count; ++i) {
        const double x = static_cast<double>(i) + 1;
        all[0][i] = 1;
        all[1][i] = x;
        all[2][i] = 1 / x;
        all[3][i] = std::abs(heavy(random));
        all[4][i] = static_cast<double>(i % 3);
        all[5][i] = i % 4 == 3 ? 100 : x;
    }
    return all;
}

double evidence_above(const std::vector<double>& values, double centre) {
    SymmetryTest test{centre};
    for (const double value : values)
        test.add(value);
    return test.above();
}

/// Differences of two turns, each with 1 % noise; in one turn of ten also a delay of 5 to 20 %.
struct Turns {
    double slower = 0;
    bool with_delays = false;
    std::mt19937_64 random;
    double turn() {
        const double noise = 0.01 * std::normal_distribution<double>{}(random);
        std::uniform_real_distribution<double> uniform;
        const bool delayed = with_delays && uniform(random) < 0.1;
        return noise + (delayed ? 0.05 + 0.15 * uniform(random) : 0);
    }
    double operator()() { return slower + turn() - turn(); }
};

constexpr std::size_t most_rounds = 100;
constexpr double error = 0.01;   // of a bound on both sides

/// Rounds until a difference is found; one more than `most_rounds`: it is not. By bets, and by the t-mixture of Race.
std::size_t rounds_of_bets(Turns turns) {
    SymmetryTest test{0};
    for (std::size_t round = 1; round <= most_rounds; ++round) {
        test.add(turns());
        if (std::max(test.above(), test.below()) >= std::log(2 / error))
            return round;
    }
    return most_rounds + 1;
}
std::size_t rounds_of_race(Turns turns) {
    Race race{2, {.error = error}};
    for (std::size_t round = 1; round <= most_rounds; ++round) {
        race.add_round(std::vector<double>{1, std::exp(turns())});
        const Interval found = race.log_ratio(1, 0);
        if (found.low > 0 || found.high < 0)
            return round;
    }
    return most_rounds + 1;
}

/// The rounds that each of 400 runs took, sorted.
std::vector<std::size_t> sorted_rounds(std::size_t (*rounds)(Turns), double slower, bool with_delays) {
    std::vector<std::size_t> all;
    for (std::uint64_t seed = 0; seed < 400; ++seed)
        all.push_back(rounds({.slower = slower, .with_delays = with_delays, .random = std::mt19937_64{seed}}));
    std::ranges::sort(all);
    return all;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(symmetry_test)

BOOST_AUTO_TEST_CASE(of_all_signs_no_larger_share_than_the_error_is_ever_refuted_whatever_the_distances) {
    double closest = 0;
    for (const std::vector<double>& distances : all_kinds_of_distances(14))
        for (const double share : {0.5, 0.1, 0.02, 0.005}) {
            const double above = share_of_signs(
                distances, [&](const auto& values) { return evidence_above(values, 0) >= -std::log(share); });
            BOOST_TEST(above <= share);
            closest = std::max(closest, above / share);
        }
    BOOST_TEST(closest > 0.5);   // else the bound holds for another reason than the bets
}

BOOST_AUTO_TEST_CASE(the_side_below_is_the_side_above_mirrored) {
    std::mt19937_64 random{3};
    SymmetryTest here{0.25}, there{-0.25};
    for (int i = 0; i < 200; ++i) {
        const double value = std::normal_distribution<double>{0.3}(random);
        here.add(value);
        there.add(-value);
        BOOST_TEST(here.above() == there.below());
        BOOST_TEST(here.below() == there.above());
    }
    BOOST_TEST(here.above() >= 0);
}

BOOST_AUTO_TEST_CASE(a_slow_down_of_two_percent_in_one_percent_of_noise_is_found_in_few_rounds) {
    const auto plain = sorted_rounds(rounds_of_bets, 0.02, false), delayed = sorted_rounds(rounds_of_bets, 0.02, true);
    BOOST_TEST(plain[200] <= 14u);
    BOOST_TEST(plain.back() <= 60u);
    BOOST_TEST(delayed[200] <= 24u);
    BOOST_TEST(delayed.back() <= most_rounds);
    BOOST_TEST(sorted_rounds(rounds_of_bets, 0, true)[8] > most_rounds);   // false alarms: at most 2 %
}

BOOST_AUTO_TEST_CASE(delayed_turns_hide_from_a_normal_mixture_what_bets_find) {
    BOOST_TEST(sorted_rounds(rounds_of_race, 0.02, false)[200] <= 12u);
    BOOST_TEST(sorted_rounds(rounds_of_race, 0.02, true)[220] > most_rounds);
}

BOOST_AUTO_TEST_CASE(the_bounds_are_where_the_test_begins_to_refute) {
    for (const bool with_delays : {false, true}) {
        Turns turns{.slower = 0.02, .with_delays = with_delays, .random = std::mt19937_64{11}};
        std::vector<double> values, mirrored;
        for (int i = 0; i < 40; ++i) {
            values.push_back(turns());
            mirrored.push_back(-values.back());
        }
        const double evidence = -std::log(error);
        const Interval bounds = centre_of(values, error);
        BOOST_TEST(bounds.low < bounds.median);
        BOOST_TEST(bounds.median < bounds.high);
        BOOST_TEST(evidence_above(values, bounds.low) >= evidence);
        BOOST_TEST(evidence_above(values, bounds.low + 1e-9) < evidence);
        BOOST_TEST(evidence_above(mirrored, -bounds.high) >= evidence);
        BOOST_TEST(evidence_above(mirrored, -bounds.high + 1e-9) < evidence);
        for (double centre = bounds.low; centre > -0.5; centre -= 0.003)   // refuted centres have no gap
            BOOST_TEST(evidence_above(values, centre) >= evidence);
    }
}

BOOST_AUTO_TEST_CASE(of_all_signs_no_larger_share_than_the_error_has_its_centre_below_the_bounds) {
    for (const std::vector<double>& distances : all_kinds_of_distances(9))
        BOOST_TEST(share_of_signs(distances, [](const auto& values) { return centre_of(values, 0.1).low > 0; }) <= 0.1);
}

BOOST_AUTO_TEST_CASE(few_values_have_no_bounds_and_no_values_no_centre) {
    std::vector<double> values;
    BOOST_TEST(std::isnan(centre_of(values, 0.01).median));
    for (int i = 0; i < 7; ++i)
        values.push_back(1 + 0.01 * i);
    BOOST_TEST(centre_of(values, 0.01).low == -std::numeric_limits<double>::infinity());
    BOOST_TEST(centre_of(values, 0.01).high == std::numeric_limits<double>::infinity());
    values.push_back(1.07);
    values.push_back(1.08);
    BOOST_TEST(centre_of(values, 0.01).low > 0.9);
    BOOST_TEST(centre_of(values, 0.01).high < 1.1);
}

BOOST_AUTO_TEST_CASE(values_whose_centre_moves_have_no_common_centre) {
    std::vector<double> values(30, 1.0);
    for (int i = 0; i < 400; ++i)
        values.push_back(-1 - 1e-6 * i);
    const Interval bounds = centre_of(values, 0.01);
    BOOST_TEST(bounds.low > bounds.high);
}

BOOST_AUTO_TEST_CASE(equal_values_are_their_own_centre) {
    const std::vector<double> values(30, 0.5);
    const Interval bounds = centre_of(values, 0.01);
    BOOST_TEST(bounds.low <= 0.5);
    BOOST_TEST(bounds.high >= 0.5);
    BOOST_TEST(bounds.high - bounds.low < 1e-12);
}

BOOST_AUTO_TEST_CASE(values_that_are_no_numbers_and_errors_out_of_range_are_refused) {
    SymmetryTest test{0};
    BOOST_CHECK_THROW(test.add(std::nan("")), std::invalid_argument);
    BOOST_CHECK_THROW(test.add(std::numeric_limits<double>::infinity()), std::invalid_argument);
    const std::vector<double> values{1, 2};
    for (const double wrong : {0.0, 1.0, -1.0, std::nan("")})
        BOOST_CHECK_THROW((void)centre_of(values, wrong), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
