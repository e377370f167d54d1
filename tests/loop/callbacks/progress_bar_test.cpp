#include <drawpoint/loop/callbacks/progress_bar.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdio>
#include <string>

#include "loop/callbacks/small_learner.hpp"
#include "support/temporary_folder.hpp"

namespace drawpoint {
namespace {

using namespace test;
using namespace std::chrono_literals;

/// What is shown of a fit of two epochs, in which a draw takes 3 s and a forward 1 s.
std::string shown(ProgressBarOptions options, const FitOptions& fit_options, nanoseconds step = 4s) {
    const TemporaryFolder folder;
    std::FILE* const to = std::fopen((folder / "shown").c_str(), "w");
    options.to = to;
    SmallLearner learner;
    learner.say = {0.5, 0.25, 0.125, 1, 2, 3};
    Fitting fitting;
    ProgressBar bar{AnyClock{fitting.clock}, options};
    if (options.recorder != nullptr)
        fitting.callbacks.add(*const_cast<MetricsRecorder*>(options.recorder));
    fitting.callbacks.add(bar);
    At at{Event::after_pred, 0, [&](LoopState&) { fitting.clock.advance(step / 4); }};
    fitting.callbacks.add(at);
    Tape::Epochs epochs = sizes(fit_options.epochs, {100, 100, 60});
    for (auto& epoch : epochs)
        for (DrawCost& cost : epoch)
            cost.starved = step * 3 / 4;
    Tape tape{fitting.clock, epochs};
    run_alone(fit(learner, tape, fit_options, fitting.callbacks, fitting.recorder));
    std::fclose(to);
    return bytes_in(folder / "shown");
}

}   // namespace

BOOST_AUTO_TEST_SUITE(progress_bar)

BOOST_AUTO_TEST_CASE(a_file_gets_a_line_every_five_seconds) {
    BOOST_TEST(shown({.prefix = "run: "}, {.epochs = 2}) ==
               "run: train 1/2  batch 2/3       25 samples/s  draw 75.0 %  loss 0.25  (8.00 s)\n"
               "run: train 2/2  batch 1/3       20 samples/s  draw 75.0 %  loss 1  (16.0 s)\n"
               "run: train 2/2  batch 3/3       20 samples/s  draw 75.0 %  loss 3  (24.0 s)\n");
}

BOOST_AUTO_TEST_CASE(a_terminal_gets_a_bar_that_redraws_itself_and_is_gone_in_the_end) {
    const std::string text = shown({.terminal = true, .colour = false}, {});
    BOOST_TEST(text ==
               "\r████████░░░░░░░░░░░░░░░░  train 1/1  batch 1/3       25 samples/s  draw 75.0 %  loss 0.5\x1b[K"
               "\r████████████████░░░░░░░░  train 1/1  batch 2/3       25 samples/s  draw 75.0 %  loss 0.25\x1b[K"
               "\r████████████████████████  train 1/1  batch 3/3       15 samples/s  draw 75.0 %  loss 0.125\x1b[K"
               "\r\x1b[K");
    BOOST_TEST(has(shown({.terminal = true, .colour = true}, {}), "\r\x1b[36m████"));
}

BOOST_AUTO_TEST_CASE(a_bar_is_not_redrawn_more_than_ten_times_a_second) {
    const std::string text = shown({.terminal = true, .colour = false}, {.epochs = 2}, 40ms);
    BOOST_TEST(has(text, "batch 3/3"));
    BOOST_TEST(!has(text, "batch 1/3"));
}

BOOST_AUTO_TEST_CASE(each_epoch_leaves_its_row_when_there_is_a_recorder) {
    MetricsRecorder recorder;
    BOOST_TEST(shown({.recorder = &recorder}, {.epochs = 2}, 4ms) == "epoch 1/2  train_loss 0.2891  (12.0 ms)\n"
                                                                     "epoch 2/2  train_loss 1.177  (12.0 ms)\n");
}

BOOST_AUTO_TEST_CASE(a_stream_that_takes_nothing_does_no_harm) {
    std::FILE* const full = std::fopen("/dev/full", "w");
    SmallLearner learner;
    Fitting fitting;
    ProgressBar bar{AnyClock{fitting.clock}, {.to = full, .terminal = true}};
    At at{Event::after_pred, 0, [&](LoopState&) { fitting.clock.advance(1s); }};
    fitting.callbacks.add(bar);
    fitting.callbacks.add(at);
    fitting.fit(learner, {}, {1, 1});
    BOOST_TEST(learner.steps == 2);
    std::fclose(full);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
