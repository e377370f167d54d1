#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/callbacks/gradient_accumulation.hpp>
#include <drawpoint/loop/callbacks/terminate_on_nan.hpp>
#include <drawpoint/loop/fit.hpp>

#include "golden/exceptions.hpp"
#include "golden/golden_files.hpp"

#include "support/tape.hpp"

/// A recorded input of the original, replayed through `fit` on a clock that moves by exactly the recorded costs.
namespace golden {

inline std::int64_t cost_of(const Json& batch, const char* stage) {
    return batch.contains(stage) ? batch.at(stage).get<std::int64_t>() : 0;
}

/// Plays the recorded costs of each batch, in the order in which batches are drawn.
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
                batch.contains("bs_x") ? batch.at("bs_x") : batch.at("bs");   // size of the input, not of the target
            draws.push_back(
                {.starved = std::chrono::nanoseconds{cost_of(batch, "draw")}, .size = size.get<std::size_t>()});
        }
    }
    return all;
}

/// Takes the time that the case gives for each event.
class Gap final : public drawpoint::Callback {
public:
    Gap(drawpoint::ManualClock& clock, const Json& json, int order) : clock_{&clock}, order_{order} {
        check_keys(json, {"order", "ns"});
        for (const auto& [event, ns] : json.at("ns").items())
            costs_[drawpoint::event_named(event)] = ns.get<std::int64_t>();
    }
    [[nodiscard]] std::string_view name() const noexcept override { return "Gap"; }
    [[nodiscard]] int order() const noexcept override { return order_; }
    [[nodiscard]] drawpoint::EventSet events() const noexcept override {
        drawpoint::EventSet events;
        for (const auto& [event, ns] : costs_)
            events |= drawpoint::EventSet{event};
        return events;
    }
    void on(drawpoint::Event event, drawpoint::LoopState&) override {
        clock_->advance(std::chrono::nanoseconds{costs_.at(event)});
    }

private:
    drawpoint::ManualClock* clock_;
    int order_;
    std::map<drawpoint::Event, std::int64_t> costs_;
};

/// Throws at the n-th call of an event, from 1 on.
class Thrower final : public drawpoint::Callback {
public:
    Thrower(const Json& json, int order)
        : event_{drawpoint::event_named(json.at("event").get<std::string>())},
          act_{throwing(json.at("exception").get<std::string>())},
          occurrences_{json.at("occurrences").get<std::vector<std::size_t>>()},
          order_{order} {
        check_keys(json, {"event", "exception", "occurrences", "order"});
    }
    [[nodiscard]] std::string_view name() const noexcept override { return "Thrower"; }
    [[nodiscard]] int order() const noexcept override { return order_; }
    [[nodiscard]] drawpoint::EventSet events() const noexcept override { return {event_}; }
    void on(drawpoint::Event, drawpoint::LoopState&) override {
        if (std::ranges::find(occurrences_, ++calls_) != occurrences_.end())
            act_();
    }

private:
    drawpoint::Event event_;
    std::function<void()> act_;
    std::vector<std::size_t> occurrences_;
    int order_;
    std::size_t calls_ = 0;
};

/// The exceptions that the input throws, given as one object or a list.
inline std::vector<Json> throws_in(const Json& input) {
    const Json throws = input.value("throw", Json{});
    if (throws.is_array())
        return throws.get<std::vector<Json>>();
    return throws.is_null() ? std::vector<Json>{} : std::vector{throws};
}

/// Converts recorded orders to ours, which are integers. Fractional orders are scaled, which keeps their sequence; this
/// is refused if one of our own callbacks takes part.
class Orders {
public:
    explicit Orders(const Json& input) {
        std::vector<Json> all = throws_in(input);
        for (const Json& gap : input.value("gaps", Json::array()))
            all.push_back(gap);
        for (const Json& one : all)
            fractional_ |= std::fmod(one.value("order", 0.0), 1.0) != 0;
        if (fractional_ && (input.contains("grad_accum") || input.contains("nan_loss_at")))
            throw std::runtime_error("a fractional order beside a callback with a whole one of its own");
    }
    [[nodiscard]] int operator()(const Json& one) const {
        return static_cast<int>(std::lround(one.value("order", 0.0) * (fractional_ ? 1000 : 1)));
    }

private:
    bool fractional_ = false;
};

/// Throws if the input has a key that no replay reads.
inline const Json& checked(const Json& input) {
    check_keys(input, {"id", "mode", "epochs", "options", "unit", "train", "valid", "gaps", "throw", "grad_accum",
                       "nan_loss_at", "logger", "lr_finder", "clock_start_ns"});
    if (input.value("unit", "ns") != "ns")
        throw std::runtime_error("costs are in " + input.at("unit").dump());
    if (input.contains("options"))
        check_keys(input.at("options"), {"rolling_average", "drop_first_batch"});
    for (const char* phase : {"train", "valid"})
        for (const Json& epoch : input.at(phase))
            for (const Json& batch : epoch)
                check_keys(batch,
                           {"bs", "bs_x", "draw", "forward", "predict", "loss", "backward", "opt_step", "zero_grad"});
    return input;
}

/// Everything that a replayed fit needs, with the callbacks of its input, so that a test can add others before it runs.
struct Replay {
    explicit Replay(const Json& recorded)
        : input{&checked(recorded)},
          clock{recorded.value("clock_start_ns", std::int64_t{0})},
          learner{.clock = &clock, .input = input},
          train{clock, draws_of(recorded.at("train"))},
          valid{clock, draws_of(recorded.at("valid"))} {
        const Orders order_of{recorded};
        for (const Json& gap : recorded.value("gaps", Json::array()))
            callbacks.add(gaps.emplace_back(clock, gap, order_of(gap)));
        for (const Json& one : throws_in(recorded))
            callbacks.add(throwers.emplace_back(one, order_of(one)));
        if (recorded.contains("grad_accum"))
            callbacks.add(accumulation.emplace(learner, recorded.at("grad_accum").get<std::size_t>()));
        if (recorded.contains("nan_loss_at"))
            callbacks.add(terminate_on_nan);
    }

    /// Runs the fit. Keeps an exception that leaves it, since the original also recorded what came before.
    void run() {
        const drawpoint::FitOptions options{.epochs = input->at("epochs").get<std::size_t>()};
        try {
            drawpoint::test::run_alone(drawpoint::fit(learner, train, valid, options, callbacks, recorder));
        } catch (...) {
            escaped = std::current_exception();
        }
    }

    const Json* input;
    drawpoint::ManualClock clock;
    std::exception_ptr escaped;
    drawpoint::Recorder recorder{drawpoint::RecorderOptions{}, drawpoint::AnyClock{clock}};
    ReplayLearner learner;
    std::deque<Gap> gaps;
    std::deque<Thrower> throwers;
    std::optional<drawpoint::GradientAccumulation<ReplayLearner>> accumulation;
    drawpoint::TerminateOnNaN terminate_on_nan;
    drawpoint::CallbackList callbacks;
    drawpoint::test::Tape train, valid;
};

}   // namespace golden
