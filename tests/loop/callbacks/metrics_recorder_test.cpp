#include <drawpoint/loop/callbacks/metrics_recorder.hpp>

#include <boost/test/unit_test.hpp>

#include <optional>
#include <string>
#include <vector>

#include <drawpoint/loop/cancel.hpp>

#include "loop/callbacks/small_learner.hpp"

namespace drawpoint {
namespace {
using namespace test;
using Values = std::vector<double>;
using Row = std::vector<std::optional<double>>;
}   // namespace

BOOST_AUTO_TEST_SUITE(metrics_recorder)

BOOST_AUTO_TEST_CASE(each_training_step_leaves_its_loss_and_learning_rate) {
    SmallLearner learner;
    learner.say = {3, 1, 2, 9, 9, 5, 4, 4};
    MetricsRecorder recorder{learner};
    Fitting{&recorder}.fit(learner, {.epochs = 2}, {1, 1}, {1, 1});
    const Values losses{3, 1, 9, 5};   // the other losses were validation's
    BOOST_TEST(recorder.losses() == losses, boost::test_tools::per_element());
    const Values rates{0.01, 0.01, 0.01, 0.01};
    BOOST_TEST(recorder.learning_rates() == rates, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_smoothed_loss_is_fastais_and_runs_over_epochs) {
    SmallLearner learner;
    learner.say = {3, 1, 2};
    MetricsRecorder recorder{learner, {}, {.smoothing = 0.5}};
    Fitting{&recorder}.fit(learner, {.epochs = 3}, {1});
    // val ← loss + (val - loss) × 0.5, shown as val / (1 - 0.5^n)
    const Values expected{3, (0.5 * 3 * 0.5 + 0.5 * 1) / 0.75, ((0.5 * 3 * 0.5 + 0.5) * 0.5 + 1) / 0.875};
    BOOST_TEST(recorder.smooth_losses() == expected, boost::test_tools::per_element());
    BOOST_TEST(*recorder.log()[2].values[0] == expected[2]);
}

BOOST_AUTO_TEST_CASE(the_log_has_a_row_per_epoch_with_the_means_over_samples) {
    SmallLearner learner;
    learner.say = {1, 2, 6, 3, 4, 8};
    MetricsRecorder recorder{learner, {accuracy_of(learner), top_k_accuracy_of(learner), mean_loss_of(learner)}};
    Fitting{&recorder}.fit(learner, {.epochs = 2}, {1}, {3, 1});
    const std::vector<std::string> names{"train_loss", "valid_loss", "accuracy", "top_5_accuracy", "mean_loss"};
    BOOST_TEST(recorder.names() == names, boost::test_tools::per_element());
    BOOST_REQUIRE_EQUAL(recorder.log().size(), 2);
    BOOST_TEST(recorder.log()[0].epoch == 0);
    BOOST_TEST((recorder.log()[0].values == Row{1.0, (2.0 * 3 + 6) / 4, 0.5, 1.0, 3.0}));
    BOOST_TEST(recorder.log()[1].epoch == 1);
    BOOST_TEST(*recorder.log()[1].values[1] == (4.0 * 3 + 8) / 4);
}

BOOST_AUTO_TEST_CASE(metrics_of_training_passes_are_columns_of_their_own) {
    SmallLearner learner;
    MetricsRecorder recorder{learner, {accuracy_of(learner)}, {.train_metrics = true}};
    Fitting{&recorder}.fit(learner, {}, {3, 4}, {4});
    const std::vector<std::string> names{"train_loss", "train_accuracy", "valid_loss", "valid_accuracy"};
    BOOST_TEST(recorder.names() == names, boost::test_tools::per_element());
    BOOST_TEST(*recorder.log()[0].values[1] == 3.0 / 7);
    BOOST_TEST(*recorder.log()[0].values[3] == 0.5);
}

BOOST_AUTO_TEST_CASE(what_an_epoch_did_not_have_is_absent) {
    SmallLearner learner;
    MetricsRecorder recorder{learner, {accuracy_of(learner)}};
    At at{Event::after_loss, 0, [](LoopState& state) {
              if (state.epoch == 1)
                  throw CancelEpoch{};
          }};
    Fitting fitting{&recorder, &at};
    fitting.fit(learner, {.epochs = 2}, {1}, {1});
    BOOST_TEST((recorder.log()[1].values == Row{std::nullopt, std::nullopt, std::nullopt}));
    fitting.fit(learner, {}, {1});
    BOOST_TEST(recorder.log()[0].values[0].has_value());
    BOOST_TEST((recorder.log()[0].values[1] == std::nullopt));
    fitting.fit(learner, {.record_loss = false}, {1}, {1});
    BOOST_TEST(recorder.losses().empty());
    BOOST_TEST((recorder.log()[0].values == Row{std::nullopt, std::nullopt, 0.0}));
}

BOOST_AUTO_TEST_CASE(a_fit_from_epoch_0_starts_afresh_and_a_later_one_goes_on) {
    SmallLearner learner;
    MetricsRecorder recorder{learner};
    Fitting fitting{&recorder};
    fitting.fit(learner, {.epochs = 2}, {1, 1});
    fitting.fit(learner, {.epochs = 3, .first_epoch = 2}, {1, 1});
    BOOST_TEST(recorder.losses().size() == 6);
    BOOST_TEST(recorder.log().back().epoch == 2);
    fitting.fit(learner, {}, {1});
    BOOST_TEST(recorder.losses().size() == 1);
    BOOST_TEST(recorder.log().size() == 1);
}

BOOST_AUTO_TEST_CASE(its_table_shows_every_epoch) {
    SmallLearner learner;
    learner.say = {0.5, 0.25};
    MetricsRecorder recorder{learner};
    Fitting{&recorder}.fit(learner, {.epochs = 2}, {1});
    BOOST_TEST(recorder.table() == "epoch  train_loss  valid_loss\n"
                                   "    0    0.500000           -\n"
                                   "    1    0.373737           -\n");
}

BOOST_AUTO_TEST_CASE(options_and_names_that_cannot_be_are_refused) {
    BOOST_TEST(refusal([] { MetricsRecorder{{}, {.smoothing = 1}}; }) ==
               "MetricsRecorder: smoothing must be at least 0 and below 1, got 1");
    const Metric twice{"valid_loss", [] { return 0.0; }};
    BOOST_TEST(refusal([&] { MetricsRecorder{{twice}}; }) == "MetricsRecorder: two columns are named valid_loss");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
