#include <drawpoint/bench/experiment/gate.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

namespace drawpoint::bench {
namespace {

/// Rounds of contenders that are the same, with 1 % noise a turn; some neighbouring rounds are ten times as noisy.
std::vector<std::vector<double>> equal_rounds(std::size_t count, std::size_t rows, std::uint64_t seed) {
    std::mt19937_64 random{seed};
    std::normal_distribution<double> normal;
    std::vector<std::vector<double>> rounds(count, std::vector<double>(rows));
    for (std::size_t r = 0; r < count; ++r)
        for (double& log_ratio : rounds[r])
            log_ratio = (r / 7 % 5 == 0 ? 0.1 : 0.01) * (normal(random) - normal(random));
    return rounds;
}

/// Gates of 100 rounds with this slow-down: how many had which verdict.
struct Outcomes {
    std::size_t slower = 0, not_slower = 0;
};
Outcomes gates(std::size_t count, double slower_by, std::size_t rows, const GateOptions& options) {
    Outcomes found;
    for (std::size_t g = 0; g < count; ++g) {
        Gate gate{rows, options};
        for (std::vector<double>& round : equal_rounds(100, rows, g)) {
            round[0] += std::log1p(slower_by);
            gate.add_round(round);
        }
        found.slower += gate.verdict() == GateVerdict::slower;
        found.not_slower += gate.verdict() == GateVerdict::not_slower;
    }
    return found;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(gate)

BOOST_AUTO_TEST_CASE(equal_contenders_pass_and_slower_ones_are_found) {
    const GateOptions options{};
    const Outcomes equal = gates(300, 0, 3, options), slower = gates(300, 0.05, 3, options);
    BOOST_TEST(equal.slower <= 3u);
    BOOST_TEST(equal.not_slower >= 270u);
    BOOST_TEST(slower.slower == 300u);
    BOOST_TEST(gates(100, -0.05, 3, options).slower == 0u);
}

BOOST_AUTO_TEST_CASE(all_rows_together_raise_no_more_false_alarms_than_the_error) {
    // an error large enough to be counted, and nothing else that keeps the gate open
    const Outcomes equal = gates(400, 0, 8, {.at_least = 0, .at_most = 1e-9, .error = 0.2});
    BOOST_TEST(equal.slower <= 80u + 24u);   // three standard deviations
    BOOST_TEST(equal.slower >= 10u);
}

BOOST_AUTO_TEST_CASE(a_slow_down_below_at_least_does_not_close_the_gate) {
    Gate gate{1, {.at_least = 0.01, .at_most = 0.02}};
    const std::vector<double> half{std::log1p(0.005)};
    for (int i = 0; i < 50 && gate.verdict() == GateVerdict::undecided; ++i)
        gate.add_round(half);
    BOOST_TEST((gate.verdict() == GateVerdict::not_slower));
}

BOOST_AUTO_TEST_CASE(the_gate_names_the_slowest_row_and_keeps_its_verdict) {
    Gate gate{3};
    const std::vector<double> round{0, std::log1p(0.05), std::log1p(0.2)}, faster{-1, -1, -1};
    while (gate.verdict() == GateVerdict::undecided)
        gate.add_round(round);
    BOOST_TEST(gate.slowest() == 2u);
    BOOST_TEST(gate.rounds() == least_rounds(3, {}));
    BOOST_TEST(gate.log_ratio(2).low > std::log1p(0.19));
    for (int i = 0; i < 100; ++i)
        BOOST_TEST((gate.add_round(faster) == GateVerdict::slower));
    BOOST_TEST(gate.rounds() == least_rounds(3, {}));
}

BOOST_AUTO_TEST_CASE(it_takes_all_rows_to_open_and_one_to_close) {
    Gate opened{2}, undecided{2};
    for (int i = 0; i < 12; ++i) {
        opened.add_round(std::vector<double>{0.0, 0.001});
        undecided.add_round(std::vector<double>{0.0, i % 2 == 0 ? 0.5 : -0.5});
    }
    BOOST_TEST((opened.verdict() == GateVerdict::not_slower));
    BOOST_TEST((undecided.verdict() == GateVerdict::undecided));
}

BOOST_AUTO_TEST_CASE(power_is_what_gates_on_further_rounds_of_the_same_kind_show) {
    const std::vector<double> planted{0.01, 0.02, 0.05};
    const auto power = gate_power(equal_rounds(200, 2, 77), planted, 100, {}, 500);
    BOOST_REQUIRE(power.size() == 4u);
    BOOST_TEST(power[0].slower_by == 0);
    BOOST_TEST(power[0].closed <= 0.01);
    BOOST_TEST(power[3].closed == 1);
    BOOST_TEST(power[3].median_rounds < power[2].median_rounds);
    // gates() plants in one row only, so compare by a gate of one row
    const auto foretold = gate_power(equal_rounds(300, 1, 78), std::vector<double>{0.02}, 100, {}, 1000);
    const Outcomes seen = gates(500, 0.02, 1, {});
    BOOST_TEST(std::abs(foretold[1].closed - static_cast<double>(seen.slower) / 500) < 0.1);
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_refused) {
    BOOST_CHECK_THROW(Gate(0), std::invalid_argument);
    BOOST_CHECK_THROW(Gate(1, {.error = 0}), std::invalid_argument);
    BOOST_CHECK_THROW(Gate(1, {.at_least = -1}), std::invalid_argument);
    BOOST_CHECK_THROW(Gate(1, {.at_least = 0.02, .at_most = 0.02}), std::invalid_argument);
    Gate gate{2};
    BOOST_CHECK_THROW(gate.add_round(std::vector<double>{0}), std::invalid_argument);
    BOOST_CHECK_THROW((void)gate_power(equal_rounds(9, 1, 1), std::vector<double>{0.01}, 100), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint::bench
