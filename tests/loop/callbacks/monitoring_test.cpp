#include <drawpoint/loop/callbacks/monitor.hpp>

#include <boost/test/unit_test.hpp>

#include <limits>
#include <vector>

#include <drawpoint/loop/callbacks/early_stopping.hpp>
#include <drawpoint/loop/callbacks/reduce_on_plateau.hpp>
#include <drawpoint/loop/callbacks/terminate_on_nan.hpp>

#include "loop/callbacks/small_learner.hpp"

namespace drawpoint {
namespace {

using namespace test;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Number of epochs that a fit under EarlyStopping runs while `column` takes these values.
std::size_t epochs_run(const std::vector<double>& values, const MonitorOptions& monitor, std::size_t patience = 1) {
    SmallLearner learner;
    std::size_t epoch = 0;
    MetricsRecorder recorder{
        {{monitor.column == "valid_loss" ? "other" : monitor.column, [&] { return values[epoch]; }}}};
    for (const double value : values)
        learner.say.insert(learner.say.end(), {0.0, value});
    EarlyStopping stopping{recorder, monitor, patience};
    At next{Event::after_epoch, 70, [&](LoopState&) { ++epoch; }};
    At end{Event::after_cancel_fit, 0, [&](LoopState&) { ++epoch; }};
    Fitting{&recorder, &stopping, &next, &end}.fit(learner, {.epochs = values.size()}, {1}, {1});
    return epoch;
}

/// Learning rates at the ends of epochs with these validation losses.
std::vector<double> rates(const std::vector<double>& values, const PlateauOptions& options) {
    SmallLearner learner;
    learner.rate = 1;
    for (const double value : values)
        learner.say.insert(learner.say.end(), {0.0, value});
    MetricsRecorder recorder;
    ReduceOnPlateau plateau{learner, recorder, options};
    std::vector<double> seen;
    At at{Event::after_epoch, 70, [&](LoopState&) { seen.push_back(learner.rate); }};
    Fitting{&recorder, &plateau, &at}.fit(learner, {.epochs = values.size()}, {1}, {1});
    return seen;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(monitoring)

BOOST_AUTO_TEST_CASE(the_fit_ends_when_a_loss_has_not_fallen_for_patience_epochs) {
    BOOST_TEST(epochs_run({5, 4, 4, 3}, {}) == 3);
    BOOST_TEST(epochs_run({5, 4, 4, 3}, {}, 2) == 4);
    BOOST_TEST(epochs_run({5, 4, 6, 7, 8, 3}, {}, 3) == 5);
    BOOST_TEST(epochs_run({5, 4, 3, 2}, {}) == 4);
}

BOOST_AUTO_TEST_CASE(an_improvement_is_larger_than_min_delta) {
    BOOST_TEST(epochs_run({5, 4.5, 1}, {.min_delta = 0.5}) == 2);
    BOOST_TEST(epochs_run({5, 4.4, 1}, {.min_delta = 0.5}) == 3);
}

BOOST_AUTO_TEST_CASE(the_name_says_which_way_is_better_unless_the_mode_does) {
    BOOST_TEST(epochs_run({1, 2, 3}, {.column = "accuracy"}) == 3);
    BOOST_TEST(epochs_run({1, 2, 3}, {.column = "error_rate"}) == 2);
    BOOST_TEST(epochs_run({1, 2, 3}, {.column = "accuracy", .mode = MonitorMode::min}) == 2);
    BOOST_TEST(epochs_run({1, 2, 3}, {.mode = MonitorMode::max}) == 3);
    BOOST_TEST(epochs_run({3, 2, 3}, {.column = "accuracy", .min_delta = 0.5}) == 2);
}

BOOST_AUTO_TEST_CASE(a_value_that_is_no_number_or_infinitely_bad_is_no_improvement) {
    BOOST_TEST(epochs_run({std::nan(""), 1}, {}) == 1);
    BOOST_TEST(epochs_run({infinity, 1}, {}) == 1);
    BOOST_TEST(epochs_run({infinity, 1}, {}, 2) == 2);
}

BOOST_AUTO_TEST_CASE(an_epoch_without_the_value_is_no_improvement_also_when_a_resumed_fit_reads_it) {
    SmallLearner learner;
    learner.say = {0, 5, 0, 0, 4, 0, 3};   // the second epoch is not validated
    MetricsRecorder recorder;
    EarlyStopping stopping{recorder, {}, 2};
    At canceller{Event::before_validate, 0, [](LoopState& state) {
                     if (state.epoch == 1)
                         throw CancelValid{};
                 }};
    Fitting fitting{&recorder, &stopping, &canceller};
    fitting.fit(learner, {.epochs = 2}, {1}, {1});
    BOOST_TEST(stopping.waited() == 1u);
    fitting.fit(learner, {.epochs = 4, .first_epoch = 2}, {1}, {1});
    BOOST_TEST(recorder.log().size() == 4u);
    BOOST_TEST(stopping.waited() == 0u);
    BOOST_TEST(*stopping.best() == 3);
}

BOOST_AUTO_TEST_CASE(a_fit_resumed_after_it_had_stopped_ends_at_once) {
    SmallLearner learner;
    learner.say = {0, 1, 0, 2, 0, 0};
    MetricsRecorder recorder;
    EarlyStopping stopping{recorder};
    Fitting fitting{&recorder, &stopping};
    fitting.fit(learner, {.epochs = 5}, {1}, {1});
    BOOST_TEST(recorder.log().size() == 2);
    BOOST_TEST(stopping.stopped());
    BOOST_TEST(*stopping.best() == 1);
    fitting.fit(learner, {.epochs = 5, .first_epoch = 2}, {1}, {1});
    BOOST_TEST(recorder.log().size() == 2);
    BOOST_TEST(stopping.waited() == 1);
}

BOOST_AUTO_TEST_CASE(whoever_ends_a_fit_says_why) {
    SmallLearner learner;
    learner.say = {0, 1, 0, 2, 0, 3, 0, 0};
    std::string reason;
    At end{Event::after_cancel_fit, 0, [&](LoopState& state) { reason = state.cancel_reason; }};
    MetricsRecorder recorder;
    EarlyStopping stopping{recorder, {}, 2};
    Fitting{&recorder, &stopping, &end}.fit(learner, {.epochs = 5}, {1}, {1});
    BOOST_TEST(reason == "EarlyStopping: valid_loss has not improved for 2 epochs");

    SmallLearner diverging;
    diverging.say = {std::numeric_limits<double>::infinity()};
    TerminateOnNaN terminate;
    Fitting{&terminate, &end}.fit(diverging, {.epochs = 5}, {1});
    BOOST_TEST(reason == "TerminateOnNaN: the loss is inf");
}

BOOST_AUTO_TEST_CASE(reductions_are_pytorchs) {
    const std::vector<double> first{1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001};
    BOOST_TEST(rates({1.0, 0.5, 0.49999, 0.6, 0.4, 0.5, 0.5, 0.5, 0.5, 0.5}, {.patience = 1}) == first,
               boost::test_tools::tolerance(1e-12) << boost::test_tools::per_element());
    const std::vector<double> cooled{1, 1, 0.5, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3};
    BOOST_TEST(rates({1, 1, 1, 1, 1, 1, 1, 1, 1}, {.factor = 0.5, .patience = 1, .cooldown = 2, .min_rate = 0.3}) ==
                   cooled,
               boost::test_tools::per_element());
    const std::vector<double> rising{1, 0.1, 0.1, 0.01, 0.001, 0.001};
    BOOST_TEST(rates({0.5, 0.52, 0.6, 0.61, 0.55, 0.7},
                     {.mode = MonitorMode::max, .threshold = 0.05, .relative = false, .patience = 0}) == rising,
               boost::test_tools::tolerance(1e-12) << boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_reduction_too_small_to_matter_is_not_made) {
    const std::vector<double> kept{1, 1};
    BOOST_TEST(rates({1, 1}, {.factor = 0.5, .patience = 0, .eps = 0.5}) == kept, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_resumed_plateau_counts_on_without_reducing_again) {
    SmallLearner learner;
    learner.rate = 1;
    MetricsRecorder recorder;
    const PlateauOptions options{.patience = 1};
    ReduceOnPlateau first{learner, recorder, options}, second{learner, recorder, options};
    learner.say = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1};   // reduces after the third and the fifth epoch
    Fitting{&recorder, &first}.fit(learner, {.epochs = 4}, {1}, {1});
    BOOST_TEST(learner.rate == 0.1);
    Fitting{&recorder, &second}.fit(learner, {.epochs = 5, .first_epoch = 4}, {1}, {1});
    BOOST_TEST(learner.rate == 0.1 * 0.1);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_monitored_is_refused_with_what_can) {
    MetricsRecorder recorder;
    SmallLearner learner;
    BOOST_TEST(refusal([&] { EarlyStopping{recorder, {.column = "accuracy"}}; }) ==
               "EarlyStopping: there is no column accuracy; there are train_loss, valid_loss");
    BOOST_TEST(refusal([&] { EarlyStopping{recorder, {.min_delta = -1}}; }) ==
               "EarlyStopping: min_delta must be at least 0, got -1");
    BOOST_TEST(refusal([&] { EarlyStopping{recorder, {}, 0}; }) == "EarlyStopping: patience must be at least 1, got 0");
    BOOST_TEST(refusal([&] { ReduceOnPlateau{learner, recorder, {.factor = 1}}; }) ==
               "ReduceOnPlateau: factor must be above 0 and below 1, got 1");

    EarlyStopping stopping{recorder};
    BOOST_TEST(has(refusal([&] { Fitting{&recorder, &stopping}.fit(learner, {}, {1}); }),
                   "EarlyStopping: epoch 0 has no valid_loss"));
    MetricsRecorder elsewhere;
    EarlyStopping lost{elsewhere};
    BOOST_TEST(has(refusal([&] { Fitting{&lost}.fit(learner, {}, {1}, {1}); }),
                   "EarlyStopping: the MetricsRecorder it watches is not among the callbacks"));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
