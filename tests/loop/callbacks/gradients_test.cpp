#include <boost/test/unit_test.hpp>

#include <limits>
#include <vector>

#include <drawpoint/loop/callbacks/gradient_accumulation.hpp>
#include <drawpoint/loop/callbacks/gradient_clipping.hpp>
#include <drawpoint/loop/callbacks/metrics_recorder.hpp>
#include <drawpoint/loop/callbacks/terminate_on_nan.hpp>

#include "loop/callbacks/small_learner.hpp"

namespace drawpoint {
namespace {
using namespace test;
}

BOOST_AUTO_TEST_SUITE(gradients)

BOOST_AUTO_TEST_CASE(accumulation_steps_only_when_enough_samples_were_seen) {
    SmallLearner learner;
    GradientAccumulation accumulation{learner, 8};
    std::vector<std::size_t> steps, waiting;
    At after{Event::after_batch, 60, [&](LoopState&) {
                 steps.push_back(learner.steps);
                 waiting.push_back(accumulation.count());
             }};
    Fitting fitting{&accumulation, &after};
    fitting.fit(learner, {}, {4, 3, 2, 8, 4});
    const std::vector<std::size_t> expected_steps{0, 0, 1, 2, 2}, expected_waiting{4, 7, 0, 0, 4};
    BOOST_TEST(steps == expected_steps, boost::test_tools::per_element());
    BOOST_TEST(waiting == expected_waiting, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(accumulated_gradients_are_weighted_by_their_samples_and_the_loss_stays_as_it_is) {
    SmallLearner learner;
    learner.weight = 10;
    GradientAccumulation accumulation{learner, 8};
    MetricsRecorder recorder{learner};
    double stepped = 0;
    At before{Event::before_step, 20, [&](LoopState&) { stepped = learner.gradient; }};
    Fitting{&accumulation, &before, &recorder}.fit(learner, {}, {6, 2});
    BOOST_TEST(stepped == 2 * (10 - 6) * 6.0 / 8 + 2 * (10 - 2) * 2.0 / 8);
    const std::vector<double> losses{16, 64};
    BOOST_TEST(recorder.losses() == losses, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_batch_that_waits_is_a_cancelled_step_that_still_has_its_after_batch) {
    SmallLearner learner;
    GradientAccumulation accumulation{learner, 2};
    int after_batches = 0, after_cancels = 0;
    At after{Event::after_batch, 0, [&](LoopState&) { ++after_batches; }};
    At cancelled{Event::after_cancel_batch, 0, [&](LoopState&) { ++after_cancels; }};
    Fitting fitting{&accumulation, &after, &cancelled};
    fitting.fit(learner, {}, {1, 1, 1});
    BOOST_TEST(after_batches == 3);
    BOOST_TEST(after_cancels == 2);
    const Ledger ledger = fitting.recorder.ledger();
    BOOST_REQUIRE_EQUAL(ledger.steps.size(), 3);
    BOOST_TEST((ledger.steps[0].status == StepStatus::cancelled));
    BOOST_TEST((ledger.steps[1].status == StepStatus::complete));
}

BOOST_AUTO_TEST_CASE(a_new_fit_drops_what_the_last_one_left_over_and_a_resumed_one_keeps_it) {
    SmallLearner learner;
    GradientAccumulation accumulation{learner, 4};
    Fitting fitting{&accumulation};
    fitting.fit(learner, {}, {3});
    BOOST_TEST(learner.gradient != 0);
    fitting.fit(learner, {.epochs = 2, .first_epoch = 1}, {1});
    BOOST_TEST(learner.steps == 1);
    fitting.fit(learner, {}, {3});
    fitting.fit(learner, {}, {1});
    BOOST_TEST(learner.steps == 1);
    BOOST_TEST(learner.gradient == 2 * (learner.weight - 1) / 4);
}

BOOST_AUTO_TEST_CASE(validation_neither_counts_nor_scales) {
    SmallLearner learner;
    GradientAccumulation accumulation{learner, 4};
    Fitting{&accumulation}.fit(learner, {}, {3}, {2, 2});
    BOOST_TEST(accumulation.count() == 3);
    BOOST_TEST(learner.factor == 1);
}

BOOST_AUTO_TEST_CASE(clipping_shrinks_what_is_stepped_and_knows_the_norm_before) {
    SmallLearner learner;
    learner.weight = 5;
    GradientClipping clipping{learner, 0.5};
    Fitting{&clipping}.fit(learner, {}, {1});
    BOOST_TEST(clipping.norm() == 8);
    BOOST_TEST(learner.clipped_to == 0.5);
    BOOST_TEST(learner.weight == 5 - 0.01 * 0.5);
}

BOOST_AUTO_TEST_CASE(gradients_are_clipped_after_they_were_accumulated_and_only_then) {
    SmallLearner learner;
    learner.weight = 5;
    GradientClipping clipping{learner, 0.5};
    GradientAccumulation accumulation{learner, 2};
    Fitting fitting{&clipping, &accumulation};
    fitting.fit(learner, {}, {1});
    BOOST_TEST(clipping.norm() == 0);
    fitting.fit(learner, {}, {1, 1});
    BOOST_TEST(clipping.norm() == 8);
}

BOOST_AUTO_TEST_CASE(a_loss_that_is_no_number_ends_the_fit_after_its_batch) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const double bad : {std::nan(""), infinity, -infinity}) {
        SmallLearner learner;
        learner.say = {1, bad, 1};
        TerminateOnNaN terminate;
        MetricsRecorder recorder{learner};
        bool cancelled = false;
        At at{Event::after_cancel_fit, 0, [&](LoopState&) { cancelled = true; }};
        Fitting{&terminate, &recorder, &at}.fit(learner, {.epochs = 2}, {1, 1, 1});
        BOOST_TEST(cancelled);
        BOOST_TEST(learner.steps == 2);
        // the recorder comes later in the order and never sees the bad loss, as in fastai
        const std::vector<double> losses{1};
        BOOST_TEST(recorder.losses() == losses, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(a_validation_loss_that_is_no_number_ends_the_fit_too) {
    SmallLearner learner;
    learner.say = {1, std::nan("")};
    TerminateOnNaN terminate;
    Fitting{&terminate}.fit(learner, {.epochs = 2}, {1}, {1});
    BOOST_TEST(learner.steps == 1);
}

BOOST_AUTO_TEST_CASE(a_learner_lets_go_of_its_batch_however_the_step_ended) {
    const std::vector<std::function<void()>> cancels{[] {}, [] { throw CancelBatch{}; }, [] { throw CancelTrain{}; },
                                                     [] { throw CancelEpoch{}; }, [] { throw CancelFit{}; }};
    for (const auto& cancel : cancels) {
        SmallLearner learner;
        At at{Event::after_pred, 0, [&](LoopState& state) {
                  BOOST_TEST(learner.batches_held == 1);
                  if (*state.training)
                      cancel();
              }};
        Fitting{&at}.fit(learner, {.epochs = 2}, {1, 1}, {1});
        BOOST_TEST(learner.batches_held == 0);
    }
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_refused_by_name) {
    SmallLearner learner;
    BOOST_TEST(refusal([&] { GradientAccumulation{learner, 0}; }) ==
               "GradientAccumulation: samples must be at least 1, got 0");
    BOOST_TEST(
        has(refusal([&] { GradientClipping{learner, 0.0}; }), "GradientClipping: max_norm must be above 0, got 0"));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
