#include <drawpoint/diagnosis/replay/prediction.hpp>

#include <random>
#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include "diagnosis/replay/replayed_runs.hpp"

using namespace drawpoint;
using namespace drawpoint::test;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// Options under which only the samples are uncertain.
PredictOptions certain() {
    return {.replications = 9, .core_efficiency_spread = 0, .model_error = 0, .gain_error = 0, .distance_error = 0};
}

/// Another run of the same kind: lognormal samples, and a loop nearly as slow.
RecordedRun drawn_run(std::uint64_t seed) {
    RecordedRun run = constant_run({.batch_size = 4, .compute = {0, 9 * ms}, .steps = 120});
    std::mt19937_64 random{seed};
    std::lognormal_distribution<double> lengths{std::log(3e6), 0.8};
    for (SampleDemand& sample : run.samples)
        sample.stages[0].wait_ns = std::llround(lengths(random));
    return run;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(prediction)

BOOST_AUTO_TEST_CASE(what_is_certain_is_predicted_exactly) {
    const RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 3 * ms}, .compute = {0, 4 * ms}, .steps = 50});
    const Prediction one = predict(run, run.setting, {}, certain());
    for (const double rate : {one.batches_per_s.median, one.batches_per_s.low, one.batches_per_s.high})
        BOOST_TEST(rate == 1e3 / 12, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(one.draw_share.median == 8.0 / 12, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(one.p99_draw_s.median == 8e-3, boost::test_tools::tolerance(1e-9));
    LoaderSetting three = run.setting;
    three.num_workers = three.prefetch_depth = 3;
    const Interval gain = predict_gain(run, three, {}, certain());
    BOOST_TEST(gain.median == 2.0, boost::test_tools::tolerance(1e-3));
    BOOST_TEST(predict_gain(run, run.setting, {.compute = 0.5}, certain()).high == 0.0);
}

BOOST_AUTO_TEST_CASE(no_change_gains_nothing_however_uncertain_the_rest) {
    RecordedRun run = random_run(4);
    run.cores = 3;
    const PredictOptions options{.replications = 20, .cores_spread = 0.5, .core_efficiency = 0.9, .gain_error = 0.3};
    BOOST_TEST((predict_gain(run, run.setting, {}, options) == Interval{}));
}

BOOST_AUTO_TEST_CASE(the_model_error_widens_the_interval) {
    const RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 3 * ms}, .compute = {0, 4 * ms}, .steps = 50});
    PredictOptions options = certain();
    options.replications = 100;
    options.model_error = 0.1;   // 90 % of the errors are within 1.64 times this
    const Interval rate = predict(run, run.setting, {}, options).batches_per_s;
    BOOST_TEST(rate.high / rate.low == std::exp(2 * 1.645 * 0.1), boost::test_tools::tolerance(1e-3));
    BOOST_TEST(rate.median == 1e3 / 12, boost::test_tools::tolerance(0.05));
}

BOOST_AUTO_TEST_CASE(the_farther_from_what_was_recorded_the_wider_the_interval) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 3 * ms}, .compute = {0, 4 * ms}, .steps = 50});
    run.batches_per_s = 1e3 / 12;
    PredictOptions options = certain();
    options.replications = 500;
    options.distance_error = 0.2;
    const Interval same = predict(run, run.setting, {}, options).batches_per_s;
    BOOST_TEST(same.high / same.low == 1, boost::test_tools::tolerance(1e-3));
    LoaderSetting twice = run.setting;
    twice.num_workers = 2;
    const double sigmas = 2 * 1.645 * 0.2 * std::log(2.0);
    const Interval rate = predict(run, twice, {}, options).batches_per_s;
    BOOST_TEST(std::log(rate.high / rate.low) == sigmas, boost::test_tools::tolerance(1e-3));
    BOOST_TEST(rate.median == 1e3 / 6, boost::test_tools::tolerance(0.02));
    const Interval gain = predict_gain(run, twice, {}, options);
    BOOST_TEST(std::log((1 + gain.high) / (1 + gain.low)) == sigmas, boost::test_tools::tolerance(1e-3));
}

BOOST_AUTO_TEST_CASE(a_gain_has_an_error_of_its_own) {
    const RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 3 * ms}, .compute = {0, 4 * ms}, .steps = 50});
    PredictOptions options = certain();
    options.model_error = 0.3;
    options.gain_error = 0.1;
    LoaderSetting twice = run.setting;
    twice.num_workers = 2;
    const Interval gain = predict_gain(run, twice, {}, options);
    BOOST_TEST(std::log((1 + gain.high) / (1 + gain.low)) == 2 * 1.645 * 0.1, boost::test_tools::tolerance(1e-3));
}

BOOST_AUTO_TEST_CASE(the_median_lies_in_the_interval_and_the_same_seed_gives_the_same) {
    const RecordedRun run = random_run(8);
    const Prediction one = predict(run, run.setting), other = predict(run, run.setting);
    BOOST_TEST((one.batches_per_s == other.batches_per_s));
    BOOST_TEST((one.p99_draw_s == other.p99_draw_s));
    for (const Interval& of : {one.batches_per_s, one.draw_share, one.p99_draw_s}) {
        BOOST_TEST(of.low <= of.median);
        BOOST_TEST(of.median <= of.high);
    }
    BOOST_TEST(one.batches_per_s.low < one.batches_per_s.high);
    BOOST_TEST(!(predict(run, run.setting, {}, {.seed = 2}).batches_per_s == one.batches_per_s));
}

BOOST_AUTO_TEST_CASE(cores_that_others_take_slow_what_computes) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {3 * ms, 0}, .compute = {0, 1 * ms}, .steps = 50});
    run.setting.num_workers = run.setting.prefetch_depth = 4;
    run.cores = 4;
    const double free = predict(run, run.setting, {}, certain()).batches_per_s.median;
    run.foreign_cores = 2;
    const double shared = predict(run, run.setting, {}, certain()).batches_per_s.median;
    BOOST_TEST(shared == free / 2, boost::test_tools::tolerance(0.01));
}

BOOST_AUTO_TEST_CASE(intervals_from_one_recording_hold_most_other_runs_of_the_same_kind) {
    // Both the recording and the predicted run are random, so the interval, which accounts for one of them, holds fewer
    // than 90 %.
    std::size_t held = 0;
    constexpr std::size_t runs = 60;
    for (std::uint64_t seed = 1; seed <= runs; ++seed) {
        PredictOptions options = certain();
        options.replications = 30;
        const RecordedRun run = drawn_run(seed), other = drawn_run(1000 + seed);
        const Interval rate = predict(run, run.setting, {}, options).batches_per_s;
        ReplayOptions real = exact(other.setting);
        real.warm_up_steps = options.warm_up_steps;
        const double truth = replay(other, real).batches_per_s;
        held += truth >= rate.low && truth <= rate.high;
    }
    BOOST_TEST(held >= runs * 6 / 10);
    BOOST_TEST(held < runs);
}

BOOST_AUTO_TEST_CASE(however_few_the_replications_an_interval_holds_nine_of_ten) {
    RecordedRun run = constant_run({.batch_size = 1, .sample = {1 * ms, 0}, .compute = {0, ms / 10}, .steps = 5});
    run.cores = 2;
    run.setting.num_workers = run.setting.prefetch_depth = 2;
    PredictOptions options = certain();
    options.core_efficiency = 0.7;
    const double usual = predict(run, run.setting, {}, options).batches_per_s.median;
    options.core_efficiency_spread = 0.05;
    std::mt19937_64 random{11};
    std::normal_distribution<double> normal;
    for (const std::size_t replications : {2u, 3u, 6u, 12u, 18u, 19u, 30u}) {
        constexpr std::size_t runs = 400;
        std::size_t held = 0;
        options.replications = replications;
        for (options.seed = 1; options.seed <= runs; ++options.seed) {
            const Interval rate = predict(run, run.setting, {}, options).batches_per_s;
            const double truth =
                usual * (1 + options.core_efficiency_spread / options.core_efficiency * normal(random));
            held += truth >= rate.low && truth <= rate.high;
        }
        BOOST_TEST(held >= runs * 85 / 100, replications << " replications: " << held);
        BOOST_TEST(held <= runs * 95 / 100, replications << " replications: " << held);
    }
}

BOOST_AUTO_TEST_CASE(an_interval_of_few_is_not_beyond_what_can_be) {
    RecordedRun run = random_run(3);
    PredictOptions options{.replications = 2, .model_error = 3};
    for (options.seed = 1; options.seed <= 20; ++options.seed) {
        const Prediction one = predict(run, run.setting, {}, options);
        BOOST_TEST(one.batches_per_s.low >= 0);
        BOOST_TEST(one.draw_share.low >= 0);
        BOOST_TEST(one.draw_share.high <= 1);
    }
    options.replications = 1;
    const Interval alone = predict(run, run.setting, {}, options).batches_per_s;
    BOOST_TEST(alone.low == alone.high);
}

BOOST_AUTO_TEST_CASE(a_gain_is_the_same_however_often_the_recorded_setting_was_replayed) {
    const RecordedRun run = random_run(6);
    PredictOptions options{.replications = 12};
    const std::vector<double> rates = recorded_rates(run, options);
    BOOST_REQUIRE(rates.size() == 12);
    const Change change{.compute = 0.5};
    for (const std::size_t replications : {12u, 5u}) {   // five replications are the first five of twelve
        options.replications = replications;
        BOOST_TEST((predict_gain(run, run.setting, change, options, rates) ==
                    predict_gain(run, run.setting, change, options)));
    }
    options.replications = 13;
    BOOST_CHECK_THROW((void)predict_gain(run, run.setting, change, options, rates), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(the_runs_own_spread_of_cores_counts_as_one_asked_for) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {3 * ms, 0}, .compute = {0, 1 * ms}, .steps = 50});
    run.setting.num_workers = run.setting.prefetch_depth = 4;
    run.cores = 4;
    run.foreign_cores = 2;
    PredictOptions options = certain();
    const Interval narrow = predict(run, run.setting, {}, options).batches_per_s;
    options.cores_spread = 0.3;
    const Interval asked = predict(run, run.setting, {}, options).batches_per_s;
    options.cores_spread = 0;
    run.foreign_cores_spread = 0.3;
    BOOST_TEST((predict(run, run.setting, {}, options).batches_per_s == asked));
    BOOST_TEST(asked.high - asked.low > 10 * (narrow.high - narrow.low));
}

BOOST_AUTO_TEST_CASE(no_replication_is_no_prediction) {
    const RecordedRun run = random_run(1);
    BOOST_CHECK_THROW((void)predict(run, run.setting, {}, {.replications = 0}), std::invalid_argument);
    BOOST_CHECK_THROW((void)predict_gain(run, run.setting, {}, {.replications = 0}), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
