#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/loop/callbacks/learner_hooks.hpp>
#include <drawpoint/loop/event_callback.hpp>
#include <drawpoint/loop/fit.hpp>

#include "support/tape.hpp"

namespace drawpoint::test {

/// Has one weight, which learns the batch's size: loss (w - size)², SGD with momentum. It models every concept that a
/// callback may require of a learner.
struct SmallLearner {
    double weight = 0, velocity = 0, gradient = 0, rate = 0.01;
    double factor = 1, value = 0, clipped_to = 0;
    std::size_t size = 0, seen = 0, batches_held = 0, steps = 0;
    bool training = true;
    std::vector<double> say;   ///< losses to report instead of computed ones, one per batch, as long as there are any

    void begin_phase(bool trains) {
        training = trains;
        seen = 0;
    }
    void forward(const TapeBatch& batch) {
        size = batch.size();
        ++batches_held;
    }
    void loss(const TapeBatch&) {
        factor = 1;
        seen += size;
        value = std::pow(weight - static_cast<double>(size), 2);
        if (!say.empty()) {
            value = say.front();
            say.erase(say.begin());
        }
    }
    void backward() { gradient += factor * 2 * (weight - static_cast<double>(size)); }
    void opt_step() {
        velocity = 0.9 * velocity + gradient;
        weight -= rate * velocity;
        ++steps;
    }
    void zero_grad() { gradient = 0; }
    void end_batch() noexcept { batches_held = 0; }
    [[nodiscard]] double loss_value() const { return value; }

    [[nodiscard]] double learning_rate() const { return rate; }
    void set_learning_rate(double to) { rate = to; }
    void scale_gradients(double by) { factor = by; }
    double clip_gradients(double max_norm) {
        const double norm = std::abs(gradient);
        gradient *= std::min(1.0, max_norm / norm);
        clipped_to = std::abs(gradient);
        return norm;
    }
    [[nodiscard]] Metrics metrics() const {
        return {.correct = seen / 2,
                .seen = seen,
                .in_top_k = seen,
                .top_k = 5,
                .loss_sum = 3.0 * static_cast<double>(seen)};
    }
    void save(Checkpoint& to) const {
        to.set_number("model.weight", weight);
        to.set_numbers("rest", {velocity, gradient, rate});
    }
    void load(const Checkpoint& from) {
        const std::vector<double> rest = from.numbers("rest");
        if (rest.size() != 3)
            from.refuse("not of this learner");
        weight = from.number("model.weight");
        velocity = rest[0], gradient = rest[1], rate = rest[2];
    }
};
static_assert(Learner<SmallLearner, TapeBatch> && ForgettingLearner<SmallLearner> && TunableLearner<SmallLearner> &&
              ClippingLearner<SmallLearner> && ScalingLearner<SmallLearner> && MeasuredLearner<SmallLearner> &&
              SavableLearner<SmallLearner>);

/// A tape of epochs with batches of these sizes.
inline Tape::Epochs sizes(std::size_t epochs, const std::vector<std::size_t>& of_each) {
    Tape::Epochs tape(epochs);
    for (auto& epoch : tape)
        for (const std::size_t size : of_each)
            epoch.push_back({.size = size});
    return tape;
}

/// Runs fits with these callbacks.
struct Fitting {
    ManualClock clock{1'000};
    Recorder recorder{RecorderOptions{}, AnyClock{clock}};
    CallbackList callbacks;

    Fitting() = default;
    explicit Fitting(std::initializer_list<Callback*> list) {
        for (Callback* callback : list)
            callbacks.add(*callback);
    }

    void fit(SmallLearner& learner, const FitOptions& options, const std::vector<std::size_t>& train,
             const std::vector<std::size_t>& valid = {}) {
        Tape train_tape{clock, sizes(options.epochs, train)}, valid_tape{clock, sizes(options.epochs, valid)};
        if (valid.empty())
            run_alone(drawpoint::fit(learner, train_tape, options, callbacks, recorder));
        else
            run_alone(drawpoint::fit(learner, train_tape, valid_tape, options, callbacks, recorder));
    }
};

/// Calls the test's function at one event, with a given order.
class At final : public Callback {
public:
    At(Event event, int order, std::function<void(LoopState&)> act)
        : event_{event}, order_{order}, act_{std::move(act)} {}
    std::string_view name() const noexcept override { return "At"; }
    EventSet events() const noexcept override { return {event_}; }
    int order() const noexcept override { return order_; }
    void on(Event, LoopState& state) override { act_(state); }

private:
    Event event_;
    int order_;
    std::function<void(LoopState&)> act_;
};

/// The text of what `act` throws, or "" if it throws nothing.
template <class Act>
std::string refusal(Act act) {
    try {
        act();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

inline bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}   // namespace drawpoint::test
