#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/callback.hpp>
#include <drawpoint/loop/fit.hpp>

#include "support/tape.hpp"

namespace drawpoint::test {

using namespace std::chrono_literals;

/// Takes 10, 4, 20, 6 and 2 ms for forward, loss, backward, opt_step and zero_grad.
struct CostedLearner {
    ManualClock* clock;
    void begin_phase(bool) {}
    void forward(const TapeBatch&) { clock->advance(10ms); }
    void loss(const TapeBatch&) { clock->advance(4ms); }
    void backward() { clock->advance(20ms); }
    void opt_step() { clock->advance(6ms); }
    void zero_grad() { clock->advance(2ms); }
    [[nodiscard]] double loss_value() const { return 1; }
};

/// Calls a function at one event.
class At final : public Callback {
public:
    At(Event event, std::function<void(LoopState&)> act, int order = 0)
        : event_{event}, order_{order}, act_{std::move(act)} {}
    [[nodiscard]] std::string_view name() const noexcept override { return "At"; }
    [[nodiscard]] EventSet events() const noexcept override { return EventSet{event_}; }
    [[nodiscard]] int order() const noexcept override { return order_; }
    void on(Event, LoopState& state) override { act_(state); }

private:
    Event event_;
    int order_;
    std::function<void(LoopState&)> act_;
};

/// A fit whose epochs have some training batches (draw 8 ms, 32 samples) and two validation batches (draw 1 ms).
struct SmallFit {
    explicit SmallFit(std::size_t epoch_count, std::size_t batches)
        : epochs{epoch_count},
          train{clock, Tape::Epochs(epoch_count, std::vector<DrawCost>(batches, {.starved = 8ms, .size = 32}))},
          valid{clock, Tape::Epochs(epoch_count, std::vector<DrawCost>(2, {.starved = 1ms, .size = 32}))} {}

    void run() {
        const FitOptions options{.epochs = epochs};
        run_alone(fit(learner, train, valid, options, callbacks, recorder));
    }

    std::size_t epochs;
    ManualClock clock;
    Recorder recorder{RecorderOptions{}, AnyClock{clock}};
    CallbackList callbacks;
    CostedLearner learner{&clock};
    Tape train, valid;
};

}   // namespace drawpoint::test
