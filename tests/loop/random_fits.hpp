#pragma once

// Random fits, in which anything may take time and anything may throw anywhere. A case is determined by its seed.

#include <drawpoint/loop/event_callback.hpp>
#include <drawpoint/loop/fit.hpp>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "support/tape.hpp"

namespace drawpoint::test {

/// What the calls of learners took, by the piece they belong to.
using Spent = std::map<Span, std::int64_t>;

class Random {
public:
    explicit Random(std::uint32_t seed) : engine_{seed} {}
    /// uniform in 0 … n - 1
    std::size_t below(std::size_t n) { return engine_() % n; }
    bool one_in(std::size_t n) { return below(n) == 0; }
    nanoseconds cost() { return nanoseconds{one_in(3) ? 0 : 1 + below(1'000)}; }

private:
    std::minstd_rand engine_;
};

inline void throw_something(Random& random) {
    switch (random.below(10)) {
    case 0: throw CancelFit{};
    case 1: throw CancelEpoch{};
    case 2: throw CancelTrain{};
    case 3: throw CancelValid{};
    case 4:
    case 5: throw CancelBatch{};
    case 6: throw CancelStep{};
    case 7: throw CancelBackward{};
    case 8: throw std::runtime_error{"an ordinary exception"};
    default: throw 8;
    }
}

/// The environment of a case. `spent` is what its learner's calls took, by the piece they belong to.
struct World {
    Random& random;
    ManualClock& clock;
    Spent& spent;
    CallbackList callbacks;
    std::size_t throws_one_in;   // per event
};

/// A learner whose calls take random times; a call that throws has spent its time before.
struct RandomLearner {
    World* world;
    std::size_t throws_one_in;

    void begin_phase(bool) { world->clock.advance(world->random.cost()); }
    void forward(const TapeBatch&) { work(Span::forward); }
    void loss(const TapeBatch&) { work(Span::loss); }
    void backward() { work(Span::backward); }
    void opt_step() { work(Span::opt_step); }
    void zero_grad() { work(Span::zero_grad); }
    double loss_value() {
        world->clock.advance(world->random.cost());
        return 0.5;
    }
    void work(Span span) {
        const nanoseconds cost = world->random.cost();
        world->clock.advance(cost);
        if (throws_one_in != 0 && world->random.one_in(throws_one_in))
            throw_something(world->random);
        world->spent[span] += cost.count();
    }
};

/// A callback of random order and events that spends time, throws, changes the list, or can be switched off.
class RandomCallback final : public Callback {
public:
    RandomCallback(World& world, std::deque<RandomCallback>& all) : world_{&world}, all_{&all} {
        static constexpr std::array orders{-100, -50, -20, -10, -9, -8, -1, 0, 0, 5, 48, 49, 50, 60, 100};
        order_ = orders[world.random.below(orders.size())];
        const std::size_t density = 1 + world.random.below(4);
        for (std::size_t e = 0; e < event_count; ++e)
            if (static_cast<Event>(e) != Event::after_create && world.random.one_in(density))
                events_ |= EventSet{static_cast<Event>(e)};
        run_train = !world.random.one_in(8), run_valid = !world.random.one_in(8);
    }
    [[nodiscard]] std::string_view name() const noexcept override { return "RandomCallback"; }
    [[nodiscard]] int order() const noexcept override { return order_; }
    [[nodiscard]] EventSet events() const noexcept override { return events_; }
    void on(Event, LoopState&) override {
        Random& random = world_->random;
        world_->clock.advance(random.cost());
        switch (random.below(64)) {
        case 0: world_->callbacks.remove(*this); break;
        case 1: world_->callbacks.remove((*all_)[random.below(all_->size())]); break;
        case 2:
            if (all_->size() < 12)
                world_->callbacks.add(all_->emplace_back(*world_, *all_));
            break;
        case 3: run = false; break;
        default: break;
        }
        if (world_->throws_one_in != 0 && random.one_in(world_->throws_one_in))
            throw_something(random);
    }

private:
    World* world_;
    std::deque<RandomCallback>* all_;
    int order_ = 0;
    EventSet events_;
};

inline Tape random_tape(World& world, std::size_t epochs) {
    Random& random = world.random;
    Tape::Epochs draws(epochs);
    for (auto& epoch : draws)
        for (std::size_t batches = random.below(5); batches > 0; --batches)
            epoch.push_back({random.cost(), random.cost(), random.cost(), 1 + random.below(9)});
    Tape tape{world.clock, std::move(draws)};
    tape.opening = random.cost(), tape.give_back = random.cost();
    tape.known_size = !random.one_in(4);
    tape.suspends = random.one_in(16);
    if (random.one_in(8))
        tape.claimed_size = random.below(6);
    if (random.one_in(16)) {
        tape.failure = std::make_exception_ptr(std::runtime_error{"a failing source"});
        tape.fails_at = random.below(3);
    }
    return tape;
}

/// Runs one fit to its end, or until it is abandoned. Returns the time from before_fit on.
inline std::int64_t run_random_fit(std::uint32_t seed, ManualClock& clock, Recorder& recorder, Spent& spent) {
    Random random{seed};
    static constexpr std::array<std::size_t, 5> rates{0, 0, 200, 50, 12};
    World world{random, clock, spent, {}, rates[random.below(rates.size())]};
    std::deque<RandomCallback> callbacks;
    for (std::size_t n = random.below(7); n > 0; --n)
        world.callbacks.add(callbacks.emplace_back(world, callbacks));
    RandomLearner learner{&world, random.one_in(8) ? 20u : 0u};
    FitOptions options{.epochs = 1 + random.below(4)};
    options.max_steps = random.one_in(8) ? 1 + random.below(6) : 0;
    options.record_loss = !random.one_in(4);
    Tape train = random_tape(world, options.epochs), valid = random_tape(world, options.epochs);
    const std::int64_t begin_ns = clock.now_ns();
    const bool validates = !random.one_in(4), abandoned = train.suspends && random.one_in(2);
    const std::size_t turns = random.below(12);
    {
        asio::io_context context{1};
        auto done = [](std::exception_ptr) {};   // whatever leaves the fit, the pieces must add up
        if (validates)
            asio::co_spawn(context, fit(learner, train, valid, options, world.callbacks, recorder), std::move(done));
        else
            asio::co_spawn(context, fit(learner, train, options, world.callbacks, recorder), std::move(done));
        if (!abandoned)
            context.run();
        for (std::size_t i = 0; abandoned && i < turns; ++i)
            context.run_one();
    }
    return clock.now_ns() - begin_ns;
}

}   // namespace drawpoint::test
