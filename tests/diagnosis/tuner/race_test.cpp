#include <drawpoint/diagnosis/tuner/race.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <random>
#include <vector>

namespace drawpoint {
namespace {

/// Races of candidates with these true rates: random factors apply to each round and, smaller ones, to each rate.
struct Track {
    std::vector<double> rates;
    double common = 0.1, own = 0.01;
    std::mt19937_64 random{7};

    std::vector<double> round(const Race& race) {
        std::normal_distribution<double> normal;
        const double luck = common * normal(random);
        std::vector<double> seen;
        for (std::size_t i = 0; i < rates.size(); ++i)
            seen.push_back(race.dropped(i) ? 0 : rates[i] * std::exp(luck + own * normal(random)));
        return seen;
    }
    /// Rounds until there is a winner, or `most` if there is none by then.
    std::size_t run(Race& race, std::size_t most) {
        for (std::size_t i = 0; i < most; ++i) {
            race.add_round(round(race));
            if (race.winner())
                return i + 1;
        }
        return most;
    }
};

}   // namespace

BOOST_AUTO_TEST_SUITE(race)

BOOST_AUTO_TEST_CASE(the_cheapest_within_two_percent_wins_though_a_dearer_one_is_faster) {
    Race race{4};
    Track track{.rates = {50, 99, 99.5, 100}};
    const std::size_t rounds = track.run(race, 200);
    BOOST_TEST(rounds < 60);
    BOOST_TEST(race.winner().value() == 1);
    BOOST_TEST(race.dropped(0));
    BOOST_TEST(!race.dropped(3));
}

BOOST_AUTO_TEST_CASE(luck_that_all_share_in_a_round_decides_nothing) {
    Race calm{2}, stormy{2};
    Track quiet{.rates = {90, 100}, .common = 0}, loud{.rates = {90, 100}, .common = 1};
    BOOST_TEST(quiet.run(calm, 200) == loud.run(stormy, 200));
    BOOST_TEST((calm.winner() == stormy.winner()));
}

BOOST_AUTO_TEST_CASE(candidates_a_hair_from_the_margin_are_not_separated_and_the_leader_says_what_is_likely) {
    Race race{2};
    Track track{.rates = {97.99, 100}, .own = 0.02};
    BOOST_TEST(track.run(race, 20) == 20);
    BOOST_TEST(!race.winner());
    BOOST_TEST(race.leader().has_value());
}

BOOST_AUTO_TEST_CASE(two_rounds_that_agree_exactly_decide_nothing_yet) {
    Race race{2};
    for (int i = 0; i < 2; ++i)
        race.add_round(std::vector<double>{100, 100});
    BOOST_TEST(!race.winner());
}

BOOST_AUTO_TEST_CASE(looking_after_every_round_errs_no_more_often_than_promised_however_noisy_rounds_are) {
    constexpr int races = 400;
    for (const double noise : {0.01, 0.05, 0.3})
        for (const std::vector<double>& rates : {std::vector<double>{96, 100, 100}, {100, 100, 100, 100, 100}}) {
            int wrong = 0;
            for (int i = 0; i < races; ++i) {
                Race race{rates.size()};
                Track track{.rates = rates, .own = noise, .random = std::mt19937_64(static_cast<std::uint64_t>(i))};
                track.run(race, 60);
                bool bad = rates[0] < 98 && race.winner() == 0;
                for (std::size_t candidate = 0; candidate < rates.size(); ++candidate)
                    bad = bad || (rates[candidate] == 100 && race.dropped(candidate));
                wrong += bad;
            }
            BOOST_TEST_INFO("noise " << noise << ", " << rates.size() << " candidates");
            BOOST_CHECK_LE(wrong, races / 20);
        }
}

BOOST_AUTO_TEST_CASE(a_clear_loser_is_dropped_after_a_few_rounds) {
    Race race{5};
    Track track{.rates = {70, 100, 100, 101, 100}, .own = 0.02};
    for (int i = 0; i < 5; ++i)
        race.add_round(track.round(race));
    BOOST_TEST(race.dropped(0));
}

BOOST_AUTO_TEST_CASE(a_round_of_another_size_and_margins_that_are_none_are_refused) {
    Race race{2};
    BOOST_CHECK_THROW(race.add_round(std::vector<double>{1}), std::invalid_argument);
    BOOST_CHECK_THROW(Race(0), std::invalid_argument);
    BOOST_CHECK_THROW((Race{2, {.within = 0}}), std::invalid_argument);
    BOOST_CHECK_THROW((Race{2, {.error = 1}}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_single_candidate_wins_at_once_and_nobody_once_it_is_dropped) {
    Race race{1};
    BOOST_TEST(race.winner().value() == 0);
    race.drop(0);
    BOOST_TEST(!race.winner());
    BOOST_TEST(!race.leader());
}

BOOST_AUTO_TEST_CASE(the_leader_is_the_cheapest_whose_mean_is_within_the_margin) {
    Race race{3};
    race.add_round(std::vector<double>{90, 98.5, 100});
    BOOST_TEST(race.leader().value() == 1);
    Race partly{2};
    partly.add_round(std::vector<double>{0, 100});
    BOOST_TEST(partly.leader().value() == 1);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
