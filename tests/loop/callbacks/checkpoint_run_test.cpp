#include <drawpoint/loop/callbacks/checkpoint.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <drawpoint/loop/callbacks/early_stopping.hpp>
#include <drawpoint/loop/callbacks/gradient_accumulation.hpp>
#include <drawpoint/loop/callbacks/learning_rate_schedule.hpp>
#include <drawpoint/loop/callbacks/reduce_on_plateau.hpp>

#include "loop/callbacks/small_learner.hpp"
#include "support/temporary_folder.hpp"

namespace drawpoint {
namespace {

using namespace test;

const std::vector<std::size_t> train{3, 5, 2, 4, 7}, valid{2, 4};

/// A learner and everything around it that has state.
struct Run {
    SmallLearner learner;
    MetricsRecorder recorder{learner, {accuracy_of(learner)}};
    LearningRateSchedule<SmallLearner> schedule{learner, warm_up(4, cosine(0.05, 16))};
    GradientAccumulation<SmallLearner> accumulation{learner, 6};
    EarlyStopping stopping{recorder, {}, 2};
    std::vector<Stateful*> states{&recorder, &schedule, &accumulation};

    void fit(const FitOptions& options, Callback& last) {
        Fitting{&recorder, &schedule, &accumulation, &stopping, &last}.fit(learner, options, train, valid);
    }
};

std::vector<std::string> files_in(const TemporaryFolder& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{folder.path()})
        names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
}

using Names = std::vector<std::string>;

/// The files that a fit with these validation losses leaves.
Names files_of(CheckpointOptions options, const std::vector<double>& losses, std::size_t resumed_at = 0) {
    const TemporaryFolder folder;
    options.file = folder / "run.ckpt";
    SmallLearner learner;
    for (const double loss : losses)
        learner.say.insert(learner.say.end(), {0.0, loss});
    MetricsRecorder recorder;
    const auto fit = [&](const FitOptions& fit_options) {
        CheckpointCallback checkpoints{learner, options, {&recorder}, &recorder};
        Fitting{&recorder, &checkpoints}.fit(learner, fit_options, {1}, {1});
    };
    if (resumed_at > 0)
        fit({.epochs = resumed_at});
    fit({.epochs = losses.size(), .first_epoch = resumed_at});
    return files_in(folder);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_run)

BOOST_AUTO_TEST_CASE(a_checkpoint_without_a_position_of_the_loader_is_refused) {
    struct Loader {
        [[nodiscard]] std::string state() const { return "here"; }
        void restore(const std::string& to) { restored = to; }
        std::string restored;
    };
    Loader loader;
    LoaderPosition position{loader};
    Checkpoint checkpoint;
    BOOST_CHECK_EXCEPTION(position.load(checkpoint, "loader."), CheckpointError, [](const CheckpointError& error) {
        return std::string_view{error.what()}.find("has no position of the loader") != std::string_view::npos;
    });
    BOOST_TEST(loader.restored.empty());
    position.save(checkpoint, "loader.");
    position.load(checkpoint, "loader.");
    BOOST_TEST(loader.restored == "here");
}

BOOST_AUTO_TEST_CASE(a_resumed_run_is_the_run_that_was_never_interrupted) {
    for (const std::size_t interrupted : {1u, 2u, 3u}) {
        const TemporaryFolder folder;
        const CheckpointOptions options{.file = folder / "run.ckpt"};
        Run straight;
        CheckpointCallback none{straight.learner, {.file = folder / "straight.ckpt"}, straight.states};
        straight.fit({.epochs = 4}, none);

        Run first;
        CheckpointCallback checkpoints{first.learner, options, first.states};
        first.fit({.epochs = interrupted}, checkpoints);
        Run second;
        const TrainingPosition position = load_checkpoint(options.file, second.learner, second.states);
        BOOST_TEST(position.epochs == interrupted);
        BOOST_TEST(position.steps == interrupted * train.size());
        CheckpointOptions going_on = options;
        going_on.first_step = position.steps;
        CheckpointCallback more{second.learner, going_on, second.states};
        second.fit({.epochs = 4, .first_epoch = position.epochs}, more);

        BOOST_TEST(second.learner.weight == straight.learner.weight);
        BOOST_TEST(second.learner.velocity == straight.learner.velocity);
        BOOST_TEST(second.recorder.losses() == straight.recorder.losses(), boost::test_tools::per_element());
        BOOST_TEST(second.recorder.learning_rates() == straight.recorder.learning_rates(),
                   boost::test_tools::per_element());
        BOOST_TEST((second.recorder.log() == straight.recorder.log()));
        BOOST_TEST(second.accumulation.count() == straight.accumulation.count());
        BOOST_TEST(second.stopping.waited() == straight.stopping.waited());
        BOOST_TEST(bytes_in(folder / "run.ckpt") == bytes_in(folder / "straight.ckpt"));
    }
}

BOOST_AUTO_TEST_CASE(what_is_refused_changes_nothing) {
    const TemporaryFolder folder;
    Run run;
    CheckpointCallback checkpoints{
        run.learner, {.file = folder / "run.ckpt", .run = {{"batch_size", "4"}}}, run.states};
    run.fit({.epochs = 2}, checkpoints);

    Run other;
    other.learner.weight = 42;
    other.fit({.epochs = 1}, checkpoints);
    const double weight = other.learner.weight;
    const auto refused = [&](const std::vector<Stateful*>& states, const RunOptions& options, const std::string& what) {
        const std::string error =
            refusal([&] { (void)load_checkpoint(folder / "run.ckpt", other.learner, states, options); });
        BOOST_TEST(has(error, (folder / "run.ckpt").string() + ": " + what), error);
        BOOST_TEST(other.learner.weight == weight);
        BOOST_TEST(other.recorder.log().size() == 1);
        BOOST_TEST(other.recorder.losses().size() == train.size());
    };
    save_checkpoint(folder / "run.ckpt", run.learner, {2, 10}, run.states, {{"batch_size", "4"}});
    refused(other.states, {{"batch_size", "8"}}, "its batch_size is 4, here it is 8");
    refused(other.states, {{"seed", "1"}}, "does not say its seed, which is 1 here");
    MetricsRecorder with_more{{{"error", [] { return 0.0; }}}};
    refused({&other.recorder, &other.schedule, &with_more}, {}, "state.MetricsRecorder.2.names is not in it");
    refused({&with_more}, {},
            "its log has the columns train_loss, valid_loss, accuracy, this run's has train_loss, "
            "valid_loss, error");

    Checkpoint foreign;
    foreign.set_numbers("rest", {1});
    foreign.set_number("model.weight", 1);
    detail::save_position(foreign, {1, 1}, {});
    detail::save_states(foreign, run.states);
    foreign.write(folder / "run.ckpt");
    refused(other.states, {}, "not of this learner");

    for (const char* name : {"position.epochs", "position.steps"}) {
        Checkpoint absurd;
        run.learner.save(absurd);
        detail::save_position(absurd, {1, 1}, {});
        detail::save_states(absurd, run.states);
        absurd.set_integer(name, -1);
        absurd.write(folder / "run.ckpt");
        refused(other.states, {}, std::string{"its "} + name + " is -1");
    }
}

BOOST_AUTO_TEST_CASE(two_states_of_one_name_are_kept_apart) {
    const TemporaryFolder folder;
    SmallLearner learner;
    LearningRateSchedule one{learner, constant(1)}, two{learner, step_decay(1, 1, 0.5)};
    Fitting{&one}.fit(learner, {}, {1});
    Fitting{&two}.fit(learner, {}, {1, 1, 1});
    const std::vector<Stateful*> states{&one, &two};
    save_checkpoint(folder / "a.ckpt", learner, {}, states);
    const Checkpoint read = Checkpoint::read(folder / "a.ckpt");
    BOOST_TEST(read.integer("state.LearningRateSchedule.step") == 1);
    BOOST_TEST(read.integer("state.LearningRateSchedule.2.step") == 3);
}

BOOST_AUTO_TEST_CASE(files_are_made_at_the_epochs_asked_for_and_as_many_kept) {
    const std::vector<double> falling{6, 5, 4, 3, 2, 1};
    BOOST_TEST(files_of({}, falling) == Names{"run.ckpt"}, boost::test_tools::per_element());
    BOOST_TEST((files_of({.keep = 2}, falling) == Names{"run-0005.ckpt", "run-0006.ckpt"}));
    BOOST_TEST(
        (files_of({.every = 2, .keep = 0}, falling) == Names{"run-0002.ckpt", "run-0004.ckpt", "run-0006.ckpt"}));
    BOOST_TEST((files_of({.every = 4}, {3, 2, 1}) == Names{}));
    BOOST_TEST((files_of({.keep = 2}, falling, 3) == Names{"run-0005.ckpt", "run-0006.ckpt"}));
    BOOST_TEST((files_of({.every = 2, .keep = 1}, falling, 5) == Names{"run.ckpt"}));
    BOOST_TEST((files_of({.every = 2, .keep = 2}, falling, 5) == Names{"run-0004.ckpt", "run-0006.ckpt"}));
}

BOOST_AUTO_TEST_CASE(the_best_epochs_alone_are_kept_when_asked_for) {
    const std::vector<double> losses{6, 4, 5, 3, 7, 8};
    BOOST_TEST(
        (files_of({.keep = 0, .best_only = true}, losses) == Names{"run-0001.ckpt", "run-0002.ckpt", "run-0004.ckpt"}));
    BOOST_TEST((files_of({.keep = 2, .best_only = true}, losses) == Names{"run-0002.ckpt", "run-0004.ckpt"}));
    BOOST_TEST((files_of({.keep = 2, .best_only = true}, losses, 2) == Names{"run-0002.ckpt", "run-0004.ckpt"}));
    BOOST_TEST((files_of({.keep = 0, .best_only = true, .monitor{.min_delta = 2.5}}, losses) ==
                Names{"run-0001.ckpt", "run-0004.ckpt"}));
}

BOOST_AUTO_TEST_CASE(the_last_epoch_of_a_fit_stopped_early_is_saved) {
    const TemporaryFolder folder;
    SmallLearner learner;
    learner.say = {0, 1, 0, 2, 0, 0};
    MetricsRecorder recorder;
    EarlyStopping stopping{recorder};
    CheckpointCallback checkpoints{learner, {.file = folder / "run.ckpt"}, {&recorder}};
    Fitting{&recorder, &stopping, &checkpoints}.fit(learner, {.epochs = 5}, {1}, {1});
    BOOST_TEST((checkpoints.saved() == TrainingPosition{2, 2}));
    SmallLearner again;
    MetricsRecorder loaded;
    const std::vector<Stateful*> states{&loaded};
    const TrainingPosition position = load_checkpoint(folder / "run.ckpt", again, states);
    EarlyStopping resumed{loaded};
    Fitting{&loaded, &resumed}.fit(again, {.epochs = 5, .first_epoch = position.epochs}, {1}, {1});
    BOOST_TEST(again.steps == 0);
}

BOOST_AUTO_TEST_CASE(a_reduced_learning_rate_is_in_the_checkpoint_of_its_epoch) {
    const TemporaryFolder folder;
    SmallLearner learner;
    learner.rate = 1;
    learner.say = {0, 1, 0, 1};
    MetricsRecorder recorder;
    ReduceOnPlateau plateau{learner, recorder, {.patience = 0}};
    CheckpointCallback checkpoints{learner, {.file = folder / "run.ckpt"}, {&recorder}};
    Fitting{&checkpoints, &plateau, &recorder}.fit(learner, {.epochs = 2}, {1}, {1});
    SmallLearner again;
    (void)load_checkpoint(folder / "run.ckpt", again);
    BOOST_TEST(again.rate == 0.1);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_cannot_be_written_leaves_the_fit_and_names_the_file) {
    SmallLearner learner;
    CheckpointCallback checkpoints{learner, {.file = "/nowhere/at/all/run.ckpt"}};
    BOOST_TEST(has(refusal([&] { Fitting{&checkpoints}.fit(learner, {}, {1}); }),
                   "/nowhere/at/all/run.ckpt: cannot write the checkpoint"));
}

BOOST_AUTO_TEST_CASE(options_that_cannot_be_are_refused) {
    SmallLearner learner;
    MetricsRecorder recorder;
    const auto refused = [&](CheckpointOptions options, const MetricsRecorder* watched) {
        return refusal([&] { CheckpointCallback(learner, std::move(options), {}, watched); });
    };
    BOOST_TEST(refused({}, nullptr) == "CheckpointCallback: file must name a file");
    BOOST_TEST(refused({.file = "a", .every = 0}, nullptr) == "CheckpointCallback: every must be at least 1, got 0");
    BOOST_TEST(refused({.file = "a", .best_only = true}, nullptr) ==
               "CheckpointCallback: best_only needs a MetricsRecorder to watch");
    BOOST_TEST(refused({.file = "a", .every = 2, .best_only = true}, &recorder) ==
               "CheckpointCallback: best_only looks at every epoch, so every must be 1");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
