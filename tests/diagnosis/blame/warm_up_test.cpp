#include "diagnosis/blame/warm_up.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <vector>

#include "diagnosis/blame/drawn_ledger.hpp"

namespace drawpoint {
namespace {

using test::DrawnLedger;

/// Steps of these durations, each with a batch of its own.
Ledger steps_of(const std::vector<std::int64_t>& values, std::uint32_t depth) {
    DrawnLedger drawn{2, depth};
    std::int64_t now = 0;
    for (std::uint32_t i = 0; i < values.size(); ++i) {
        drawn.batch(i).taken_ns = now;
        drawn.step(i, now, {{Span::starved, 0}, {Span::forward, values[i]}});
        now += values[i];
    }
    return std::move(drawn.ledger);
}

/// `slow` steps of a second, then steps of a millisecond, with a little noise.
std::vector<std::int64_t> warming_up(std::size_t slow, std::size_t all) {
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < all; ++i)
        values.push_back((i < slow ? 1'000'000'000 : 1'000'000) + static_cast<std::int64_t>(i * 7919 % 1000));
    return values;
}

BOOST_AUTO_TEST_SUITE(warm_up)

BOOST_AUTO_TEST_CASE(mser5_cuts_off_groups_of_five_that_are_not_like_the_rest) {
    std::vector<double> values(100, 3.0);
    BOOST_TEST(mser5_truncation(values) == 0u);
    for (std::size_t i = 0; i < 12; ++i)
        values[i] = 50;
    BOOST_TEST(mser5_truncation(values) == 15u);
    for (double& value : values)
        value = 0;
    values[99] = 50;   // an outlier at the end does not make the beginning a warm-up
    BOOST_TEST(mser5_truncation(values) == 0u);
    BOOST_TEST(mser5_truncation({}) == 0u);
    BOOST_TEST(mser5_truncation(std::vector<double>{1, 2, 3, 4}) == 0u);
}

BOOST_AUTO_TEST_CASE(mser5_is_the_formula_worked_out_cut_by_cut) {
    std::vector<double> values;
    for (std::size_t i = 0; i < 60; ++i)
        values.push_back(std::sin(static_cast<double>(i)) + 4 * std::exp(-static_cast<double>(i) / 9));
    std::size_t best = 0;
    double least = INFINITY;
    for (std::size_t cut = 0; cut <= 6; ++cut) {
        std::vector<double> means;
        for (std::size_t at = 5 * cut; at < 60; at += 5) {
            double sum = 0;
            for (std::size_t i = at; i < at + 5; ++i)
                sum += values[i] / 5;
            means.push_back(sum);
        }
        const auto n = static_cast<double>(means.size());
        double mean = 0, squares = 0;
        for (const double m : means)
            mean += m / n;
        for (const double m : means)
            squares += (m - mean) * (m - mean);
        if (squares / n / n < least) {
            least = squares / n / n;
            best = 5 * cut;
        }
    }
    BOOST_TEST(best > 0u);
    BOOST_TEST(mser5_truncation(values) == best);
}

BOOST_AUTO_TEST_CASE(warm_up_lasts_until_the_depth_s_batches_are_taken) {
    BOOST_TEST(blame(steps_of(std::vector<std::int64_t>(40, 1000), 7)).first_steady_step == 7u);
}

BOOST_AUTO_TEST_CASE(warm_up_lasts_until_steps_are_like_the_rest) {
    const Blame result = blame(steps_of(warming_up(13, 100), 2));
    BOOST_TEST(result.first_steady_step == 15u);
    for (std::size_t i = 0; i < 100; ++i)
        BOOST_TEST(result.draws[i].warm_up == (i < 15));
}

BOOST_AUTO_TEST_CASE(warm_up_is_never_more_than_half_of_the_steps) {
    BOOST_TEST(blame(steps_of(std::vector<std::int64_t>(10, 1000), 40)).first_steady_step == 5u);
    BOOST_TEST(blame(steps_of(warming_up(80, 100), 2)).first_steady_step <= 50u);
    BOOST_TEST(blame(steps_of({}, 2)).first_steady_step == 0u);
    BOOST_TEST(blame(steps_of({5}, 2)).first_steady_step == 0u);
}

BOOST_AUTO_TEST_CASE(folded_steps_have_filled_the_window_already) {
    Ledger ledger = steps_of(std::vector<std::int64_t>(40, 1000), 7);
    ledger.folded.steps = 5;
    BOOST_TEST(blame(ledger).first_steady_step == 2u);
    ledger.folded.steps = 500;
    BOOST_TEST(blame(ledger).first_steady_step == 0u);
    ledger.folded.until_ns = 500;   // the very first step is kept, and lies far back
    BOOST_TEST(blame(ledger).first_steady_step == 1u);
}

BOOST_AUTO_TEST_CASE(only_training_steps_that_drew_tell_of_warm_up) {
    Ledger ledger = steps_of(std::vector<std::int64_t>(40, 1000), 4);
    for (std::size_t i = 0; i < 6; ++i)
        ledger.steps[i].phase = Phase::valid;
    ledger.steps[7].size = 0;
    BOOST_TEST(blame(ledger).first_steady_step == 6u + 4 + 1);
    for (StepRow& step : ledger.steps)
        step.phase = Phase::valid;   // validation is used where nothing trained
    BOOST_TEST(blame(ledger).first_steady_step == 4u);
}

BOOST_AUTO_TEST_CASE(a_pass_begins_up_to_its_first_batch) {
    Ledger ledger = steps_of(std::vector<std::int64_t>(9, 1000), 1);
    ledger.steps[0].size = 0;
    for (std::size_t i : {5u, 6u})   // a validation pass in between, in the same epoch as the next step
        ledger.steps[i].phase = Phase::valid;
    for (std::size_t i : {3u, 4u, 7u, 8u})
        ledger.steps[i].epoch = 1;
    const auto expect = [&](const std::vector<bool>& expected) {
        const std::vector<bool> first = first_of_pass(ledger);
        BOOST_TEST(first == expected, boost::test_tools::per_element());
    };
    expect({true, true, false, true, false, true, false, false, false});
    for (const std::int64_t begin : {0, 3000, 7000})
        ledger.passes.push_back({.kind = PassKind::train, .begin_ns = begin});
    for (const std::int64_t begin : {5000, 6000})
        ledger.passes.push_back({.kind = PassKind::valid, .begin_ns = begin});
    ledger.passes.push_back({.kind = PassKind::epoch, .begin_ns = 4000});   // begins no draws itself
    ledger.sort();
    expect({true, true, false, true, false, true, true, true, false});
    ledger.folded.steps = 3;   // folded between the first step and the second, which is then not the first of its pass
    ledger.folded.until_ns = 500;
    expect({true, false, false, true, false, true, true, true, false});
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
