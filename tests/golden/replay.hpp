#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/fit.hpp>

#include "golden/golden_files.hpp"

#include "support/tape.hpp"

/// A recorded input of the original, replayed through `fit` on a clock that moves by exactly the recorded costs.
namespace golden {

inline std::int64_t cost_of(const Json& batch, const char* stage) {
    return batch.contains(stage) ? batch.at(stage).get<std::int64_t>() : 0;
}

/// Plays the recorded costs of each batch in the order in which batches are drawn.
struct ReplayLearner {
    drawpoint::ManualClock* clock;
    const Json* input;
    std::size_t training_epoch = 0, validation_epoch = 0, next = 0;
    const Json* pass = nullptr;
    const Json* batch = nullptr;
    bool training = false;

    void begin_phase(bool train) {
        training = train;
        pass = train ? &input->at("train").at(training_epoch++) : &input->at("valid").at(validation_epoch++);
        next = 0;
    }
    void forward(const drawpoint::test::TapeBatch&) {
        batch = &pass->at(next++);
        advance("forward"), advance("predict");   // a batch has one of the two
    }
    void loss(const drawpoint::test::TapeBatch&) { advance("loss"); }
    void backward() { advance("backward"); }
    void opt_step() { advance("opt_step"); }
    void zero_grad() { advance("zero_grad"); }
    void scale_gradients(double) {}
    [[nodiscard]] double loss_value() const {
        const auto nan = input->find("nan_loss_at");   // [epoch, batch]
        const bool here = nan != input->end() && training && nan->at(0) == training_epoch - 1 && nan->at(1) == next - 1;
        return here ? std::numeric_limits<double>::quiet_NaN() : 0;
    }

    void advance(const char* stage) const { clock->advance(std::chrono::nanoseconds{cost_of(*batch, stage)}); }
};

inline drawpoint::test::Tape::Epochs draws_of(const Json& epochs) {
    drawpoint::test::Tape::Epochs all;
    for (const Json& epoch : epochs) {
        auto& draws = all.emplace_back();
        for (const Json& batch : epoch) {
            const Json& size =
                batch.contains("bs_x") ? batch.at("bs_x") : batch.at("bs");   // of the input, not the target
            draws.push_back(
                {.starved = std::chrono::nanoseconds{cost_of(batch, "draw")}, .size = size.get<std::size_t>()});
        }
    }
    return all;
}

/// Everything a replayed fit needs, so that a test can add callbacks before it runs.
struct Replay {
    explicit Replay(const Json& recorded)
        : input{&recorded},
          clock{recorded.value("clock_start_ns", std::int64_t{0})},
          learner{.clock = &clock, .input = input},
          train{clock, draws_of(recorded.at("train"))},
          valid{clock, draws_of(recorded.at("valid"))} {}

    void run() {
        const drawpoint::FitOptions options{.epochs = input->at("epochs").get<std::size_t>()};
        drawpoint::test::run_alone(drawpoint::fit(learner, train, valid, options, callbacks, recorder));
    }

    const Json* input;
    drawpoint::ManualClock clock;
    drawpoint::Recorder recorder{drawpoint::RecorderOptions{}, drawpoint::AnyClock{clock}};
    ReplayLearner learner;
    drawpoint::CallbackList callbacks;
    drawpoint::test::Tape train, valid;
};

}   // namespace golden
