#include <drawpoint/loop/callbacks/schedules.hpp>

#include <boost/test/unit_test.hpp>

#include <vector>

#include <drawpoint/loop/callbacks/learning_rate_schedule.hpp>
#include <drawpoint/loop/callbacks/metrics_recorder.hpp>

#include "loop/callbacks/small_learner.hpp"

namespace drawpoint {
namespace {

using namespace test;

/// Compares the schedule's first steps with the rates that PyTorch's scheduler of the same name set before each step.
void check(const RateSchedule& schedule, const std::vector<double>& expected) {
    for (std::size_t step = 0; step < expected.size(); ++step)
        BOOST_TEST(schedule(step) == expected[step], boost::test_tools::tolerance(1e-12));
}

}   // namespace

BOOST_AUTO_TEST_SUITE(schedules)

BOOST_AUTO_TEST_CASE(constant_never_changes) { check(constant(0.3), {0.3, 0.3, 0.3}); }

BOOST_AUTO_TEST_CASE(one_cycle_is_pytorchs) {
    check(one_cycle(0.4, 10),
          {0.016000000000000014, 0.20800000000000002, 0.4, 0.38019385280538953, 0.3246982615799052, 0.24450480877451572,
           0.1554967912254843, 0.0753033384200948, 0.019807747194610516, 1.6e-06});
    check(one_cycle(1.0, 7, {.pct_start = 0.5, .div_factor = 10, .final_div_factor = 100}),
          {0.1, 0.41094235253127365, 0.9140576474687263, 0.9505339495172583, 0.611649206511179, 0.18906684397156262,
           0.001, 0.001});
}

BOOST_AUTO_TEST_CASE(fit_one_cycle_is_fastais) {
    check(fit_one_cycle(1.0, 8), {0.04, 0.52, 1.0, 0.9330133717652004, 0.7500025000000001, 0.500005,
                                  0.25000749999999994, 0.06699662823479946, 1e-05, 1e-05});
}

BOOST_AUTO_TEST_CASE(cosine_is_pytorchs_and_stays_at_its_lowest) {
    check(cosine(0.1, 5, 0.01),
          {0.1, 0.09140576474687263, 0.06890576474687263, 0.04109423525312736, 0.018594235253127367, 0.01, 0.01, 0.01});
}

BOOST_AUTO_TEST_CASE(step_decay_is_pytorchs) { check(step_decay(0.1, 2, 0.5), {0.1, 0.1, 0.05, 0.05, 0.025, 0.025}); }

BOOST_AUTO_TEST_CASE(warm_up_is_pytorchs_linear_rise_before_another_schedule) {
    check(warm_up(4, constant(0.1)), {0.03333333333333333, 0.05, 0.06666666666666668, 0.08333333333333334, 0.1, 0.1});
    check(warm_up(3, cosine(0.1, 4), 0.1), {0.01, 0.04, 0.07, 0.1, 0.08535533905932738, 0.05, 0.014644660940672627, 0});
}

BOOST_AUTO_TEST_CASE(what_is_out_of_range_is_refused_by_name) {
    BOOST_TEST(refusal([] { (void)constant(0); }) == "constant: rate must be above 0, got 0");
    BOOST_TEST(refusal([] { (void)cosine(0.1, 0); }) == "cosine: steps must be at least 1, got 0");
    BOOST_TEST(refusal([] { (void)cosine(0.1, 5, 0.2); }) ==
               "cosine: min_rate must be at least 0 and at most rate, got 0.2");
    BOOST_TEST(refusal([] { (void)step_decay(0.1, 0); }) == "step_decay: step_size must be at least 1, got 0");
    BOOST_TEST(refusal([] { (void)step_decay(0.1, 1, 2); }) ==
               "step_decay: gamma must be above 0 and at most 1, got 2");
    BOOST_TEST(refusal([] { (void)one_cycle(0.1, 1); }) == "one_cycle: steps must be at least 2, got 1");
    BOOST_TEST(refusal([] { (void)one_cycle(0.1, 9, {.pct_start = 1}); }) ==
               "one_cycle: pct_start must be above 0 and below 1, got 1");
    BOOST_TEST(refusal([] { (void)fit_one_cycle(0.1, 9, {.div = 0}); }) == "fit_one_cycle: div must be above 0, got 0");
    BOOST_TEST(refusal([] { (void)warm_up(0, constant(1)); }) == "warm_up: steps must be at least 1, got 0");
    BOOST_TEST(refusal([] { (void)warm_up(1, constant(1), 0); }) ==
               "warm_up: start_factor must be above 0 and at most 1, got 0");
}

BOOST_AUTO_TEST_CASE(the_callback_sets_each_training_batchs_rate_over_all_epochs_and_none_in_validation) {
    SmallLearner learner;
    LearningRateSchedule schedule{learner, step_decay(1.0, 1, 0.5)};
    MetricsRecorder recorder{learner};
    Fitting fitting{&schedule, &recorder};
    fitting.fit(learner, {.epochs = 2}, {1, 1, 1}, {1, 1});
    const std::vector<double> expected{1, 0.5, 0.25, 0.125, 0.0625, 0.03125};
    BOOST_TEST(recorder.learning_rates() == expected, boost::test_tools::per_element());
    BOOST_TEST(learner.rate == 0.03125);
    fitting.fit(learner, {.epochs = 1}, {1});   // a new fit starts the schedule again
    BOOST_TEST(learner.rate == 1.0);
}

BOOST_AUTO_TEST_CASE(a_schedule_by_epoch_changes_between_epochs_only) {
    SmallLearner learner;
    LearningRateSchedule schedule{learner, step_decay(1.0, 1, 0.5), ScheduleUnit::epoch};
    MetricsRecorder recorder{learner};
    Fitting{&schedule, &recorder}.fit(learner, {.epochs = 3, .first_epoch = 1}, {1, 1});
    const std::vector<double> expected{0.5, 0.5, 0.25, 0.25};
    BOOST_TEST(recorder.learning_rates() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
