#include <drawpoint/loop/fit.hpp>

#include <boost/test/unit_test.hpp>

#include <exception>
#include <functional>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>

#include <drawpoint/instrumentation/facts.hpp>

#include "support/tape.hpp"

namespace drawpoint {
namespace {

using namespace std::chrono_literals;
using test::DrawCost, test::Tape, test::nanoseconds;

/// A learner whose calls take the times that the test sets.
struct ManualLearner {
    ManualClock* clock;
    nanoseconds forward_cost{}, loss_cost{}, loss_value_cost{}, backward_cost{}, opt_step_cost{}, zero_grad_cost{};

    void begin_phase(bool) {}
    void forward(const test::TapeBatch&) { clock->advance(forward_cost); }
    void loss(const test::TapeBatch&) { clock->advance(loss_cost); }
    void backward() { clock->advance(backward_cost); }
    void opt_step() { clock->advance(opt_step_cost); }
    void zero_grad() { clock->advance(zero_grad_cost); }
    double loss_value() {
        clock->advance(loss_value_cost);
        return 0.5;
    }
};

/// Records every event and calls the test's function at each.
class Watcher final : public Callback {
public:
    explicit Watcher(int order = 0) : order_{order} {}
    std::vector<std::string> seen;
    std::function<void(Event, LoopState&)> act = [](Event, LoopState&) {};

    std::string_view name() const noexcept override { return "Watcher"; }
    int order() const noexcept override { return order_; }
    EventSet events() const noexcept override {
        EventSet all;
        for (std::size_t e = 0; e < event_count; ++e)
            all |= EventSet{static_cast<Event>(e)};
        return all;
    }
    void on(Event event, LoopState& state) override {
        seen.emplace_back(name_of(event));
        act(event, state);
    }

private:
    int order_;
};

struct World {
    ManualClock clock{1'000};
    Recorder recorder{RecorderOptions{}, AnyClock{clock}};
    ManualLearner learner{&clock};
    CallbackList callbacks;
};

using Sums = std::map<std::string, std::int64_t>;

Sums pieces_of(std::span<const SpanRow> spans) {
    Sums sums;
    for (const SpanRow& piece : spans)
        sums[std::string(name_of(piece.span))] += piece.ns;
    std::erase_if(sums, [](const auto& entry) { return entry.second == 0; });
    return sums;
}

std::string text_of(const Sums& sums) {
    std::string text;
    for (const auto& [name, ns] : sums)
        text += name + " " + std::to_string(ns) + ", ";
    return text;
}

using Names = std::vector<std::string>;

}   // namespace

BOOST_AUTO_TEST_SUITE(fit_loop)

BOOST_AUTO_TEST_CASE(events_fire_in_fastais_order_with_before_draw_before_every_draw) {
    World w;
    Watcher watcher;
    w.callbacks.add(watcher);
    Tape train{w.clock, {{{}, {}}}}, valid{w.clock, {{{}}}};
    test::run_alone(fit(w.learner, train, valid, FitOptions{}, w.callbacks, w.recorder));
    const Names step{"before_draw",    "before_batch", "after_pred", "after_loss", "before_backward",
                     "after_backward", "before_step",  "after_step", "after_batch"};
    Names expected{"after_create", "before_fit", "before_epoch", "before_train"};
    expected.insert(expected.end(), step.begin(), step.end());
    expected.insert(expected.end(), step.begin(), step.end());
    for (const char* event : {"after_train", "before_validate", "before_draw", "before_batch", "after_pred",
                              "after_loss", "after_batch", "after_validate", "after_epoch", "after_fit"})
        expected.emplace_back(event);
    BOOST_TEST(watcher.seen == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_place_that_spends_a_power_of_two_is_found_in_exactly_its_own_piece) {
    World w;
    std::int64_t next_cost = 1;
    std::map<std::string, std::int64_t> spent;
    const auto cost = [&](const std::string& place) {
        const auto here = nanoseconds{next_cost};
        spent[place] = next_cost;
        next_cost *= 2;
        return here;
    };
    Watcher inside{0}, before{-20}, after{60};
    std::map<Event, nanoseconds> at;
    for (const Event event :
         {Event::before_draw, Event::before_batch, Event::after_pred, Event::after_loss, Event::before_backward,
          Event::after_backward, Event::before_step, Event::after_step, Event::after_batch})
        at[event] = cost(std::string(name_of(event)));
    for (const Event event : {Event::before_train, Event::after_train})
        at[event] = cost(std::string(name_of(event)));
    inside.act = [&](Event event, LoopState&) { w.clock.advance(at.contains(event) ? at.at(event) : 0ns); };
    const auto outside_cost = cost("callbacks");
    before.act = [&](Event event, LoopState&) { w.clock.advance(event == Event::after_loss ? outside_cost / 2 : 0ns); };
    after.act = before.act;
    w.callbacks.add(inside), w.callbacks.add(after), w.callbacks.add(before);
    w.learner.forward_cost = cost("forward"), w.learner.loss_cost = cost("loss"),
    w.learner.loss_value_cost = cost("other");
    w.learner.backward_cost = cost("backward"), w.learner.opt_step_cost = cost("opt_step");
    w.learner.zero_grad_cost = cost("zero_grad");
    Tape train{w.clock, {{DrawCost{cost("starved"), cost("handoff"), cost("transfer")}}}};
    train.give_back = cost("between"), train.opening = cost("opening");
    next_cost *= 2;

    test::run_alone(fit(w.learner, train, FitOptions{}, w.callbacks, w.recorder));
    const Ledger ledger = w.recorder.ledger();

    BOOST_REQUIRE_EQUAL(ledger.steps.size(), 1);
    const StepRow& step = ledger.steps[0];
    auto expected = spent;
    for (const char* of_the_pass : {"before_train", "after_train", "opening"})
        expected.erase(of_the_pass);
    expected["callbacks"] = 2 * (spent["callbacks"] / 2);
    BOOST_TEST(text_of(pieces_of(ledger.spans_of(step))) == text_of(expected));
    for (const PassRow& pass : ledger.passes)
        if (pass.kind == PassKind::train) {
            const std::map<std::string, std::int64_t> of_pass{{"before_train", spent["before_train"]},
                                                              {"after_train", spent["after_train"]},
                                                              {"between", spent["opening"]}};
            BOOST_TEST(text_of(pieces_of(ledger.spans_of(pass))) == text_of(of_pass));
        }
    BOOST_TEST(*duration_of(ledger, step, Action::draw) ==
               spent["before_draw"] + spent["starved"] + spent["handoff"] + spent["transfer"]);
    BOOST_TEST(*duration_of(ledger, step, Action::forward) ==
               spent["before_batch"] + spent["forward"] + spent["after_pred"]);
    BOOST_TEST(*duration_of(ledger, step, Action::backward) ==
               spent["before_backward"] + spent["backward"] + spent["after_backward"]);
    BOOST_TEST(*duration_of(ledger, step, Action::opt_step) ==
               spent["before_step"] + spent["opt_step"] + spent["after_step"]);
    BOOST_TEST(*duration_of(ledger, step, Action::zero_grad) == spent["zero_grad"]);
    BOOST_TEST(*duration_of(ledger, step, Action::other) == spent["other"]);
    BOOST_TEST(*duration_of(ledger, step, Action::between) == spent["between"]);
    BOOST_TEST(max_residual_ns(ledger) == 0);
}

BOOST_AUTO_TEST_CASE(the_actions_of_a_batch_and_what_is_in_none_of_them_sum_to_the_batch) {
    World w;
    Watcher watcher;
    std::int64_t cost = 1;
    watcher.act = [&](Event, LoopState&) { w.clock.advance(nanoseconds{cost++}); };
    w.callbacks.add(watcher);
    w.learner.forward_cost = 1us, w.learner.backward_cost = 3us;
    Tape train{w.clock, {{{}, {}, {}}, {{}, {}, {}}}}, valid{w.clock, {{{}}, {{}}}};
    test::run_alone(fit(w.learner, train, valid, FitOptions{.epochs = 2}, w.callbacks, w.recorder));
    const Ledger ledger = w.recorder.ledger();
    BOOST_TEST(ledger.steps.size() == 8);
    for (const StepRow& step : ledger.steps) {
        std::int64_t sum = 0;
        for (const Action action : {Action::forward, Action::predict, Action::loss, Action::backward, Action::opt_step,
                                    Action::zero_grad, Action::callbacks, Action::other})
            sum += duration_of(ledger, step, action).value_or(0);
        BOOST_TEST(sum == step.batch_ns);
    }
    BOOST_TEST(max_residual_ns(ledger) == 0);
}

BOOST_AUTO_TEST_CASE(a_source_of_unknown_length_ends_with_one_draw_that_is_in_no_step) {
    World w;
    Tape train{w.clock, {{DrawCost{5ns}, DrawCost{7ns}}}};
    train.known_size = false;
    test::run_alone(fit(w.learner, train, FitOptions{}, w.callbacks, w.recorder));
    const Ledger ledger = w.recorder.ledger();
    BOOST_TEST(ledger.steps.size() == 2);
    BOOST_TEST(ledger.ends_of_data.size() == 1);
    BOOST_TEST(max_residual_ns(ledger) == 0);
}

BOOST_AUTO_TEST_CASE(the_draw_that_finds_no_batch_takes_no_step_s_number) {
    World w;
    Tape train{w.clock, {{{}, {}}, {{}}}};
    train.known_size = false;
    test::run_alone(fit(w.learner, train, FitOptions{.epochs = 2}, w.callbacks, w.recorder));
    const Ledger ledger = w.recorder.ledger();
    BOOST_TEST(ledger.ends_of_data.size() == 2);
    BOOST_TEST_REQUIRE(ledger.steps.size() == 3);
    for (std::uint32_t step = 0; step < 3; ++step)
        BOOST_TEST(ledger.steps[step].step == step);
}

BOOST_AUTO_TEST_CASE(a_source_of_known_length_is_drawn_exactly_that_often) {
    World w;
    Tape train{w.clock, {{{}, {}, {}}}};
    train.claimed_size = 2;
    test::run_alone(fit(w.learner, train, FitOptions{}, w.callbacks, w.recorder));
    const Ledger ledger = w.recorder.ledger();
    BOOST_TEST(ledger.steps.size() == 2);
    BOOST_TEST(ledger.ends_of_data.size() == 0);
}

BOOST_AUTO_TEST_CASE(a_cancel_leaves_its_level_and_the_others_go_on) {
    struct Case {
        Event where;
        std::function<void()> cancel;
        std::size_t steps;
        const char* also_fires;
    };
    const std::vector<Case> cases{
        {Event::after_pred, [] { throw CancelBatch{}; }, 4, "after_cancel_batch"},
        {Event::before_backward, [] { throw CancelBackward{}; }, 4, "after_cancel_backward"},
        {Event::before_step, [] { throw CancelStep{}; }, 4, "after_cancel_step"},
        {Event::after_loss, [] { throw CancelTrain{}; }, 2, "after_cancel_train"},
        {Event::after_loss, [] { throw CancelEpoch{}; }, 2, "after_cancel_epoch"},
        {Event::after_loss, [] { throw CancelFit{}; }, 1, "after_cancel_fit"},
        {Event::before_draw, [] { throw CancelBatch{}; }, 4, "after_train"},
    };
    for (const Case& c : cases) {
        World w;
        Watcher watcher;
        watcher.act = [&](Event event, LoopState&) {
            w.clock.advance(3ns);
            if (event == c.where)
                c.cancel();
        };
        w.callbacks.add(watcher);
        Tape train{w.clock, {{{}, {}}, {{}, {}}}};
        test::run_alone(fit(w.learner, train, FitOptions{.epochs = 2}, w.callbacks, w.recorder));
        const Ledger ledger = w.recorder.ledger();
        BOOST_TEST(ledger.steps.size() == c.steps);
        BOOST_TEST(std::count(watcher.seen.begin(), watcher.seen.end(), c.also_fires) > 0,
                   c.also_fires << " did not fire");
        BOOST_TEST(watcher.seen.back() == "after_fit");
        BOOST_TEST(max_residual_ns(ledger) == 0);
        for (const StepRow& step : ledger.steps)
            BOOST_TEST((step.status == StepStatus::cancelled));
    }
}

BOOST_AUTO_TEST_CASE(what_a_cancel_says_of_its_reason_is_known_from_its_event_on_and_that_of_a_fit_is_recorded) {
    struct Case {
        Event where;
        std::function<void()> cancel;
        Event event;
        std::string reason, stopped;
    };
    const std::vector<Case> cases{
        {Event::after_pred, [] { throw CancelBatch{"a"}; }, Event::after_cancel_batch, "a", ""},
        {Event::before_backward, [] { throw CancelBackward{"b"}; }, Event::after_cancel_backward, "b", ""},
        {Event::before_step, [] { throw CancelStep{"c"}; }, Event::after_cancel_step, "c", ""},
        {Event::after_loss, [] { throw CancelTrain{"d"}; }, Event::after_cancel_train, "d", ""},
        {Event::after_pred, [] { throw CancelValid{"e"}; }, Event::after_cancel_validate, "e", ""},
        {Event::after_loss, [] { throw CancelEpoch{"f"}; }, Event::after_cancel_epoch, "f", ""},
        {Event::after_loss, [] { throw CancelFit{"no disk"}; }, Event::after_cancel_fit, "no disk", "no disk"},
        {Event::after_loss, [] { throw CancelFit{std::string{"as a string"}}; }, Event::after_fit, "as a string",
         "as a string"},
        {Event::after_loss, [] { throw CancelFit{}; }, Event::after_cancel_fit, "", ""},
        {Event::before_draw, [] { throw CancelBatch{"g"}; }, Event::after_train, "g", ""},
        {Event::before_draw, [] { throw CancelStep{"h"}; }, Event::after_train, "h", ""},
        {Event::before_draw, [] { throw CancelBackward{"i"}; }, Event::after_train, "i", ""},
    };
    for (const Case& c : cases) {
        World w;
        Watcher watcher;
        std::vector<std::string> reasons;
        const bool in_validation = c.event == Event::after_cancel_validate;
        watcher.act = [&](Event event, LoopState& state) {
            if (event == c.event)
                reasons.push_back(state.cancel_reason);
            if (event == c.where && state.training == !in_validation)
                c.cancel();
        };
        w.callbacks.add(watcher);
        Tape train{w.clock, {{{}}}}, valid{w.clock, {{{}}}};
        test::run_alone(fit(w.learner, train, valid, FitOptions{}, w.callbacks, w.recorder));
        BOOST_TEST_REQUIRE(reasons.size() == 1u, c.reason);
        BOOST_TEST(reasons.front() == c.reason);
        BOOST_TEST(w.recorder.ledger().fact(facts::stopped).value_or("") == c.stopped);
    }
}

BOOST_AUTO_TEST_CASE(any_other_exception_leaves_the_fit_with_its_step_marked_failed_and_no_time_lost) {
    World w;
    Watcher watcher;
    watcher.act = [&](Event event, LoopState& state) {
        w.clock.advance(3ns);
        if (event == Event::after_loss && state.batch == 1)
            throw std::out_of_range("the callback's own");
    };
    w.callbacks.add(watcher);
    Tape train{w.clock, {{{}, {}, {}}}};
    BOOST_CHECK_THROW(test::run_alone(fit(w.learner, train, FitOptions{}, w.callbacks, w.recorder)), std::out_of_range);
    const Ledger ledger = w.recorder.ledger();
    BOOST_REQUIRE_EQUAL(ledger.steps.size(), 2);
    BOOST_TEST((ledger.steps[1].status == StepStatus::failed));
    BOOST_TEST(max_residual_ns(ledger) == 0);
}

BOOST_AUTO_TEST_CASE(max_steps_ends_training_in_the_middle_of_an_epoch_and_still_validates) {
    World w;
    Tape train{w.clock, {{{}, {}, {}}, {{}, {}, {}}}}, valid{w.clock, {{{}}, {{}}}};
    test::run_alone(fit(w.learner, train, valid, FitOptions{.epochs = 2, .max_steps = 4}, w.callbacks, w.recorder));
    const Ledger ledger = w.recorder.ledger();
    const auto in = [&](Phase phase) {
        return std::count_if(ledger.steps.begin(), ledger.steps.end(),
                             [&](const StepRow& s) { return s.phase == phase; });
    };
    BOOST_TEST(in(Phase::train) == 4);
    BOOST_TEST(in(Phase::valid) == 2);
}

BOOST_AUTO_TEST_CASE(a_callback_that_sleeps_costs_only_inside_the_interval_its_order_puts_it_in) {
    // The actions that contain time spent before an event's first stamp, between its two stamps, or after the second;
    // none: only the batch contains it.
    struct Case {
        Event event;
        std::optional<Action> before, inside, after;
    };
    const std::vector<Case> all{
        {Event::before_draw, Action::draw, Action::draw, Action::draw},
        {Event::before_batch, {}, Action::forward, Action::forward},
        {Event::after_pred, Action::forward, Action::forward, Action::loss},
        {Event::after_loss, Action::loss, Action::loss, {}},
        {Event::before_backward, {}, Action::backward, Action::backward},
        {Event::after_backward, Action::backward, Action::backward, Action::backward},
        {Event::before_step, Action::backward, Action::opt_step, Action::opt_step},
        {Event::after_step, Action::opt_step, Action::opt_step, Action::zero_grad},
        {Event::after_batch, Action::zero_grad, {}, {}},
    };
    for (const Case& c : all)
        for (const int order : {-20, -9, -8, 0, 49, 50})
            BOOST_TEST_CONTEXT(name_of(c.event) << " at " << order) {
                World w;
                Watcher watcher{order};
                watcher.act = [&](Event event, LoopState&) { w.clock.advance(event == c.event ? 8ns : 0ns); };
                w.callbacks.add(watcher);
                Tape train{w.clock, {{{}}}};
                test::run_alone(fit(w.learner, train, FitOptions{}, w.callbacks, w.recorder));
                const Ledger ledger = w.recorder.ledger();
                const StepRow& step = ledger.steps.at(0);
                const auto& expected = order <= -9 ? c.before : order <= 49 ? c.inside : c.after;
                for (const Action action : {Action::draw, Action::forward, Action::loss, Action::backward,
                                            Action::opt_step, Action::zero_grad})
                    BOOST_TEST(*duration_of(ledger, step, action) == (expected == action ? 8 : 0));
                const bool inside = order > -9 && order <= 49;
                const auto pieces = pieces_of(ledger.spans_of(step));
                BOOST_TEST(text_of(pieces) ==
                           (inside ? std::string(name_of(c.event)) : std::string("callbacks")) + " 8, ");
            }
}

BOOST_AUTO_TEST_CASE(a_fit_can_be_abandoned_at_any_step) {
    bool ran_out = false;
    for (std::size_t handlers = 0; !ran_out; ++handlers) {
        World w;
        Tape train{w.clock, {{{}, {}, {}}}}, valid{w.clock, {{{}}}};
        train.suspends = valid.suspends = true;
        {
            asio::io_context context;
            bool ended = false;
            auto done = [&ended](std::exception_ptr) { ended = true; };
            asio::co_spawn(context, fit(w.learner, train, valid, FitOptions{}, w.callbacks, w.recorder),
                           std::move(done));
            for (std::size_t i = 0; i < handlers; ++i)
                context.run_one();
            ran_out = ended;
        }
        const Ledger ledger = w.recorder.ledger();
        BOOST_TEST(max_residual_ns(ledger) == 0);
        for (const PassRow& pass : ledger.passes)
            BOOST_TEST(pass.ended);
        BOOST_REQUIRE_LT(handlers, 1000u);
    }
}

BOOST_AUTO_TEST_CASE(callbacks_may_be_added_and_removed_while_the_loop_runs) {
    World w;
    Watcher late, leaver;
    Watcher adder;
    adder.act = [&](Event event, LoopState& state) {
        if (event == Event::before_batch && state.batch == 0)
            w.callbacks.add(late);
        if (event == Event::before_batch && state.batch == 1)
            w.callbacks.remove(leaver);
    };
    w.callbacks.add(adder), w.callbacks.add(leaver);
    Tape train{w.clock, {{{}, {}, {}}}};
    test::run_alone(fit(w.learner, train, FitOptions{}, w.callbacks, w.recorder));
    BOOST_TEST(late.seen.front() == "after_pred");
    BOOST_TEST(leaver.seen.back() == "before_draw");
    BOOST_TEST(std::count(leaver.seen.begin(), leaver.seen.end(), "before_batch") == 1);
}

BOOST_AUTO_TEST_CASE(gating_reaches_a_callback_only_in_the_phases_it_runs_in) {
    World w;
    Watcher train_only, valid_only, off;
    train_only.run_valid = false, valid_only.run_train = false, off.run = false;
    w.callbacks.add(train_only), w.callbacks.add(valid_only), w.callbacks.add(off);
    Tape train{w.clock, {{{}, {}}}}, valid{w.clock, {{{}}}};
    test::run_alone(fit(w.learner, train, valid, FitOptions{}, w.callbacks, w.recorder));
    BOOST_TEST(std::count(train_only.seen.begin(), train_only.seen.end(), "before_draw") == 2);
    BOOST_TEST(std::count(valid_only.seen.begin(), valid_only.seen.end(), "before_draw") == 1);
    BOOST_TEST(std::count(valid_only.seen.begin(), valid_only.seen.end(), "after_epoch") == 1);
    BOOST_TEST(off.seen.empty());
    BOOST_TEST(off.run);   // after_fit resets it
}

BOOST_AUTO_TEST_CASE(without_a_recorder_the_same_events_fire_and_no_clock_is_read) {
    World w;
    Watcher recorded, alone;
    const LoopTrack* track = nullptr;
    recorded.act = [&](Event, LoopState& state) { track = state.track; };
    w.callbacks.add(recorded);
    Tape train{w.clock, {{{}, {}}}}, valid{w.clock, {{{}}}};
    test::run_alone(fit(w.learner, train, valid, FitOptions{}, w.callbacks, w.recorder));
    BOOST_TEST(track != nullptr);

    CallbackList callbacks;
    callbacks.add(alone);
    alone.act = recorded.act;
    test::run_alone(fit(w.learner, train, valid, FitOptions{}, callbacks));
    BOOST_TEST(track == nullptr);
    BOOST_TEST(alone.seen == recorded.seen, boost::test_tools::per_element());
    alone.seen.clear(), recorded.seen.clear();
    test::run_alone(validate(w.learner, valid, callbacks));
    test::run_alone(validate(w.learner, valid, w.callbacks, w.recorder));
    BOOST_TEST(alone.seen == recorded.seen, boost::test_tools::per_element());
    test::run_alone(fit(w.learner, train));
    BOOST_TEST(train.drawn == 6u);

    LoopTrack nowhere{nullptr};
    nowhere.begin_pass(PassKind::fit, 0), nowhere.begin_step(Phase::train, 0, 0);
    nowhere.mark(Span::forward), nowhere.mark_until(Span::loss, 1'000);
    nowhere.end_draw(1), nowhere.end_step(StepStatus::complete, 0.5), nowhere.end_steps(), nowhere.end_pass();
    BOOST_TEST(nowhere.last_ns() == 0);
    BOOST_TEST(nowhere.step_spans().empty());
}

BOOST_AUTO_TEST_CASE(a_batch_without_targets_ends_after_after_loss_in_training_too) {
    struct Unlabelled : test::TapeBatch {
        explicit Unlabelled(test::TapeBatch&& batch) : TapeBatch(std::move(batch)) {}
        [[nodiscard]] bool has_targets() const { return false; }
    };
    struct Source {
        Tape* tape;
        struct Pass {
            using Batch = Unlabelled;
            Tape::Pass pass;
            [[nodiscard]] std::optional<std::size_t> size() const { return pass.size(); }
            [[nodiscard]] Awaitable<std::optional<Unlabelled>> next() {
                std::optional<test::TapeBatch> batch = co_await pass.next();
                if (!batch)
                    co_return std::nullopt;
                co_return Unlabelled(std::move(*batch));
            }
        };
        [[nodiscard]] Pass epoch(std::size_t e, EpochOptions options) { return Pass{tape->epoch(e, options)}; }
    };
    World w;
    Watcher watcher;
    w.callbacks.add(watcher);
    w.learner.loss_cost = 5ns, w.learner.loss_value_cost = 7ns;
    Tape tape{w.clock, {{{}}}};
    Source train{&tape};
    test::run_alone(fit(w.learner, train, FitOptions{}, w.callbacks, w.recorder));
    const Names expected{"after_create", "before_fit", "before_epoch", "before_train", "before_draw", "before_batch",
                         "after_pred",   "after_loss", "after_batch",  "after_train",  "after_epoch", "after_fit"};
    BOOST_TEST(watcher.seen == expected, boost::test_tools::per_element());
    const Ledger ledger = w.recorder.ledger();
    BOOST_TEST(ledger.steps.at(0).batch_ns == 0);   // neither the loss nor its value was computed
    BOOST_TEST(!ledger.steps.at(0).loss.has_value());
}

BOOST_AUTO_TEST_CASE(an_empty_pass_fires_its_own_events_and_draws_nothing) {
    World w;
    Watcher watcher;
    w.callbacks.add(watcher);
    Tape train{w.clock, {{{}}}}, valid{w.clock, {{}}};
    test::run_alone(fit(w.learner, train, valid, FitOptions{}, w.callbacks, w.recorder));
    const Names end{"after_train", "before_validate", "after_validate", "after_epoch", "after_fit"};
    BOOST_TEST(Names(watcher.seen.end() - 5, watcher.seen.end()) == end, boost::test_tools::per_element());
    BOOST_TEST(valid.drawn == 0u);
}

BOOST_AUTO_TEST_CASE(what_a_failing_learner_spent_is_in_its_step_and_its_passes) {
    struct Failing : ManualLearner {
        void backward() {
            clock->advance(9ns);
            throw std::runtime_error{"r"};
        }
    };
    World w;
    Failing learner{{&w.clock}};
    learner.forward_cost = 4ns;
    Tape train{w.clock, {{DrawCost{2ns}}}};
    train.give_back = 3ns;
    BOOST_CHECK_THROW(test::run_alone(fit(learner, train, FitOptions{}, w.callbacks, w.recorder)), std::runtime_error);
    const Ledger ledger = w.recorder.ledger();
    BOOST_TEST(text_of(pieces_of(ledger.spans_of(ledger.steps.at(0)))) == "forward 4, other 12, starved 2, ");
    for (const PassRow& pass : ledger.passes)
        BOOST_TEST(pass.end_ns - pass.begin_ns == 18);
    BOOST_TEST(max_residual_ns(ledger) == 0);
}

BOOST_AUTO_TEST_CASE(a_skipped_draw_uses_up_its_turn_and_what_is_left_is_dropped) {
    World w;
    Watcher watcher;
    watcher.act = [&](Event event, LoopState& state) {
        if (event == Event::before_draw && state.batch % 2 == 0)
            throw CancelBatch{};
    };
    w.callbacks.add(watcher);
    Tape train{w.clock, {{{}, {}, {}, {}, {}}}};
    test::run_alone(fit(w.learner, train, FitOptions{}, w.callbacks, w.recorder));
    const Ledger ledger = w.recorder.ledger();
    BOOST_TEST(train.drawn == 2u);   // 5 draws, 3 of them skipped
    BOOST_REQUIRE_EQUAL(ledger.steps.size(), 5u);
    for (const StepRow& step : ledger.steps) {
        BOOST_TEST((step.status == (step.batch % 2 == 0 ? StepStatus::cancelled : StepStatus::complete)));
        BOOST_TEST(step.size == step.batch % 2);
    }
}

BOOST_AUTO_TEST_CASE(validate_alone_records_one_validation_pass) {
    World w;
    Tape valid{w.clock, {{DrawCost{2ns}, DrawCost{4ns}}}};
    test::run_alone(validate(w.learner, valid, w.callbacks, w.recorder));
    const Ledger ledger = w.recorder.ledger();
    BOOST_TEST(ledger.steps.size() == 2);
    BOOST_TEST((ledger.steps[0].phase == Phase::valid));
    BOOST_TEST(max_residual_ns(ledger) == 0);
}

BOOST_AUTO_TEST_CASE(a_fit_can_be_cancelled_between_draws_that_never_suspend_and_the_recording_is_whole) {
    World w;
    Tape train{w.clock, {std::vector<DrawCost>(50, DrawCost{3ns, {}, {}})}};
    Watcher watcher;
    asio::io_context context;
    asio::cancellation_signal signal;
    int steps = 0;
    watcher.act = [&](Event event, LoopState&) {
        if (event == Event::after_batch && ++steps == 3)
            asio::post(context, [&] { signal.emit(asio::cancellation_type::terminal); });
    };
    w.callbacks.add(watcher);
    std::exception_ptr error;
    asio::co_spawn(
        context, fit(w.learner, train, FitOptions{}, w.callbacks, w.recorder),
        asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr thrown) { error = std::move(thrown); }));
    context.run();
    BOOST_REQUIRE(error);
    BOOST_CHECK_EXCEPTION(std::rethrow_exception(error), std::system_error, [](const std::system_error& thrown) {
        return thrown.code() == asio::error::operation_aborted;
    });
    BOOST_TEST(train.drawn == 3u);
    const Ledger ledger = w.recorder.ledger();
    BOOST_TEST(ledger.steps.size() == 3u);
    BOOST_TEST(ledger.passes.size() == 3u);
    for (const PassRow& pass : ledger.passes)
        BOOST_TEST(pass.ended);
    BOOST_TEST(max_residual_ns(ledger) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
