#include <drawpoint/loop/callback.hpp>
#include <drawpoint/loop/event_callback.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/show_training_loop.hpp>

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <typeinfo>
#include <vector>

#include "support/tape.hpp"

namespace drawpoint {
namespace {

using Names = std::vector<std::string>;

struct NoWork {
    std::function<void()> on_forward = [] {};
    void begin_phase(bool) {}
    void forward(const test::TapeBatch&) { on_forward(); }
    void loss(const test::TapeBatch&) {}
    void backward() {}
    void opt_step() {}
    void zero_grad() {}
    double loss_value() { return 0.5; }
};

/// Written as users write callbacks: member functions named like events, with or without the state.
class Small final : public EventCallback<Small> {
public:
    std::size_t batches = 0, fits = 0;
    std::optional<double> loss;
    void after_batch(const LoopState& state) {
        ++batches;
        loss = state.loss;
    }
    void before_fit() { ++fits; }

private:
    [[maybe_unused]] void helper_of_no_event() {}
};

template <class T>
class Generic final : public EventCallback<Generic<T>> {
public:
    void after_create(LoopState&) { ++created; }
    int created = 0;
};

struct Renamed final : EventCallback<Renamed> {
    [[nodiscard]] std::string_view name() const noexcept override { return "a name of its own"; }
    [[nodiscard]] int order() const noexcept override { return -30; }
    void before_step(LoopState&) const {}
};

/// Calls the test's function at one event.
class At final : public Callback {
public:
    At(Event event, std::function<void(LoopState&)> act) : event_{event}, act_{std::move(act)} {}
    [[nodiscard]] std::string_view name() const noexcept override { return "At"; }
    [[nodiscard]] EventSet events() const noexcept override { return {event_}; }
    void on(Event, LoopState& state) override {
        ++calls;
        act_(state);
    }
    int calls = 0;

private:
    Event event_;
    std::function<void(LoopState&)> act_;
};

struct World {
    ManualClock clock{0};
    NoWork learner;
    CallbackList callbacks;
    test::Tape train{clock, {{{}, {}}, {{}, {}}}};
    void operator()(FitOptions options = {}) { test::run_alone(fit(learner, train, options, callbacks)); }
};

const std::string sentence = "Exception occured in `At` when calling event `after_loss`:\n\t";

/// The exception that leaves a fit whose callback throws in after_loss: its type, its text, and `last_error`.
struct Left {
    const std::type_info* type = nullptr;
    std::string text, last_error;
    int code = 0;
};

template <class E>
Left leaves(E thrown) {
    World world;
    At thrower{Event::after_loss, [&](LoopState&) { throw thrown; }};
    world.callbacks.add(thrower);
    Left left;
    try {
        world();
    } catch (const std::exception& error) {
        left.type = &typeid(error);
        left.text = error.what();
        if (const auto* system = dynamic_cast<const std::system_error*>(&error))
            left.code = system->code().value();
    }
    left.last_error = world.callbacks.last_error();
    return left;
}

template <class E>
void check_wrapped(E thrown) {
    const std::string text = thrown.what();
    const Left left = leaves(std::move(thrown));
    BOOST_TEST_CONTEXT(typeid(E).name()) {
        BOOST_REQUIRE(left.type != nullptr);
        BOOST_TEST(left.type->name() == typeid(E).name());
        BOOST_TEST(left.text == sentence + text);
        BOOST_TEST(left.last_error == left.text);
    }
}

struct Custom final : std::invalid_argument {
    Custom(const char* text, std::vector<int> kept) : std::invalid_argument{text}, data{std::move(kept)} {}
    std::vector<int> data;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(callback)

BOOST_AUTO_TEST_CASE(a_class_with_members_named_as_events_is_called_at_exactly_those) {
    Small small;
    BOOST_TEST((small.events() == EventSet{Event::before_fit, Event::after_batch}));
    World world;
    world.callbacks.add(small);
    world({.epochs = 2});
    BOOST_TEST(small.fits == 1u);
    BOOST_TEST(small.batches == 4u);
    BOOST_TEST(*small.loss == 0.5);
}

BOOST_AUTO_TEST_CASE(its_name_is_its_class_unless_it_says_another) {
    BOOST_TEST(Small{}.name() == "Small");
    BOOST_TEST(Generic<std::string>{}.name().starts_with("Generic<"));
    BOOST_TEST(Renamed{}.name() == "a name of its own");
}

BOOST_AUTO_TEST_CASE(every_event_has_a_name_by_which_it_is_found) {
    for (std::size_t e = 0; e < event_count; ++e)
        BOOST_TEST((event_named(name_of(static_cast<Event>(e))) == static_cast<Event>(e)));
    BOOST_CHECK_EXCEPTION(
        static_cast<void>(event_named("before_lunch")), std::invalid_argument,
        [](const std::invalid_argument& error) { return error.what() == std::string{"missing before_lunch"}; });
}

BOOST_AUTO_TEST_CASE(after_create_fires_once_for_the_list_before_its_first_fit) {
    World world;
    Generic<int> early, late;
    world.callbacks.add(early);
    world();
    world.callbacks.add(late);
    world();
    BOOST_TEST(early.created == 1);
    BOOST_TEST(late.created == 0);

    World cancelled;
    At thrower{Event::after_create, [](LoopState&) { throw CancelFit{}; }};
    At fit_begins{Event::before_fit, [](LoopState&) {}};
    cancelled.callbacks.add(thrower), cancelled.callbacks.add(fit_begins);
    BOOST_CHECK_THROW(cancelled(), CancelFit);
    BOOST_TEST(fit_begins.calls == 0);
    BOOST_CHECK_THROW(cancelled(), CancelFit);   // it has not been rethrown yet
}

BOOST_AUTO_TEST_CASE(a_standard_exception_keeps_its_type_and_gets_the_sentence) {
    check_wrapped(std::runtime_error{"r"});
    check_wrapped(std::logic_error{"l"});
    check_wrapped(std::invalid_argument{"i"});
    check_wrapped(std::out_of_range{"o"});
    check_wrapped(std::length_error{"n"});
    check_wrapped(std::domain_error{"d"});
    check_wrapped(std::range_error{"a"});
    check_wrapped(std::overflow_error{"v"});
    check_wrapped(std::underflow_error{""});
    check_wrapped(std::system_error{2, std::generic_category()});
    BOOST_TEST(leaves(std::system_error{2, std::generic_category(), "file"}).code == 2);
}

BOOST_AUTO_TEST_CASE(an_exception_of_a_users_own_type_stays_the_same_object_with_all_it_holds) {
    World world;
    At thrower{Event::after_loss, [](LoopState&) { throw Custom{"c", {1, 2}}; }};
    world.callbacks.add(thrower);
    BOOST_CHECK_EXCEPTION(world(), Custom, [](const Custom& error) {
        const bool kept = error.data.size() == 2 && error.data[1] == 2;
        return kept && error.what() == sentence + "c";
    });
    // These exceptions have texts of their own, or none, so the list keeps the sentence about callback and event.
    const Left failed = leaves(std::filesystem::filesystem_error{"no", std::error_code{13, std::generic_category()}});
    BOOST_TEST(failed.type->name() == typeid(std::filesystem::filesystem_error).name());
    BOOST_TEST(failed.code == 13);
    BOOST_TEST(failed.last_error == sentence + failed.text);
    const Left full = leaves(std::bad_alloc{});
    BOOST_TEST(full.type->name() == typeid(std::bad_alloc).name());
    BOOST_TEST(full.last_error.starts_with(sentence));

    World of_int;
    At throws_int{Event::after_loss, [](LoopState&) { throw 7; }};
    of_int.callbacks.add(throws_int);
    BOOST_CHECK_EXCEPTION(of_int(), int, [](int thrown) { return thrown == 7; });
    BOOST_TEST(of_int.callbacks.last_error() == sentence + "an exception without a message");
}

BOOST_AUTO_TEST_CASE(an_exception_that_is_thrown_on_by_another_callback_is_explained_once) {
    World world;
    At outer{Event::before_step, [](LoopState&) {
                 World inner;
                 At thrower{Event::after_loss, [](LoopState&) { throw std::runtime_error{"deep"}; }};
                 inner.callbacks.add(thrower);
                 inner();
             }};
    world.callbacks.add(outer);
    BOOST_CHECK_EXCEPTION(world(), std::runtime_error,
                          [](const auto& error) { return error.what() == sentence + "deep"; });
    BOOST_TEST(world.callbacks.last_error() == sentence + "deep");
}

BOOST_AUTO_TEST_CASE(what_the_learner_or_the_source_throws_is_not_a_callbacks) {
    World world;
    Small small;
    world.callbacks.add(small);
    world.learner.on_forward = [] { throw std::runtime_error{"the learner's"}; };
    BOOST_CHECK_EXCEPTION(world(), std::runtime_error,
                          [](const auto& error) { return error.what() == std::string{"the learner's"}; });
    BOOST_TEST(world.callbacks.last_error() == "");
    world.learner.on_forward = [] {};
    world.train.failure = std::make_exception_ptr(std::runtime_error{"the source's"});
    BOOST_CHECK_EXCEPTION(world(), std::runtime_error,
                          [](const auto& error) { return error.what() == std::string{"the source's"}; });
    BOOST_TEST(world.callbacks.last_error() == "");
}

BOOST_AUTO_TEST_CASE(the_next_fit_forgets_the_last_error) {
    World world;
    bool throws = true;
    At thrower{Event::after_loss, [&](LoopState&) { throws ? throw std::runtime_error{"once"} : void(); }};
    world.callbacks.add(thrower);
    BOOST_CHECK_THROW(world(), std::runtime_error);
    BOOST_TEST(world.callbacks.last_error() == sentence + "once");
    throws = false;
    world();
    BOOST_TEST(world.callbacks.last_error() == "");
}

BOOST_AUTO_TEST_CASE(a_callback_that_was_switched_off_runs_again_whichever_way_the_fit_is_left) {
    const std::vector<std::function<void()>> ways{[] {}, [] { throw CancelFit{}; },
                                                  // no level catches it: it leaves the fit
                                                  [] { throw CancelValid{}; }, [] { throw std::runtime_error{"r"}; }};
    for (const auto& way : ways) {
        World world;
        Small off;
        At other{Event::before_step, [&](LoopState&) {
                     off.run = false;
                     way();
                 }};
        world.callbacks.add(off), world.callbacks.add(other);
        try {
            world();
        } catch (const std::exception&) {
        }
        BOOST_TEST(off.batches == 0u);
        BOOST_TEST(off.run);
    }
    World world;
    world.train.suspends = true;
    Small off;
    At other{Event::before_step, [&](LoopState&) { off.run = false; }};
    world.callbacks.add(off), world.callbacks.add(other);
    {
        asio::io_context context;
        auto done = [](std::exception_ptr) {};
        asio::co_spawn(context, fit(world.learner, world.train, FitOptions{}, world.callbacks), std::move(done));
        while (off.run)
            context.run_one();
    }   // destroyed at the next draw
    BOOST_TEST(off.run);
}

BOOST_AUTO_TEST_CASE(a_callback_may_leave_the_list_when_a_fit_is_over_whichever_way) {
    struct Leaver final : EventCallback<Leaver> {
        int fits = 0;
        void before_fit() { ++fits; }
        bool fit_over() noexcept override { return true; }
    };
    for (const bool fails : {false, true}) {
        World world;
        Leaver leaver, other;
        Small stays;
        At thrower{Event::after_loss, [&](LoopState&) { fails ? throw std::runtime_error{"r"} : void(); }};
        world.callbacks.add(leaver), world.callbacks.add(stays), world.callbacks.add(other);
        world.callbacks.add(thrower);
        for (int fits = 0; fits < 2; ++fits)
            try {
                world();
            } catch (const std::runtime_error&) {
            }
        BOOST_TEST(leaver.fits == 1);
        BOOST_TEST(other.fits == 1);
        BOOST_TEST(stays.fits == 2u);
        BOOST_TEST((world.callbacks.of(Event::before_fit) == std::vector<const Callback*>{&stays}));
    }
}

BOOST_AUTO_TEST_CASE(a_removed_callback_leaves_the_shown_loop_and_the_order_of_the_others) {
    Renamed early;
    At first{Event::before_step, [](LoopState&) {}}, second{Event::before_step, [](LoopState&) {}};
    CallbackList callbacks;
    callbacks.add(first), callbacks.add(second), callbacks.add(early);
    BOOST_TEST((callbacks.of(Event::before_step) == std::vector<const Callback*>{&early, &first, &second}));
    BOOST_TEST(show_training_loop(callbacks).find(" - before_step    : [a name of its own, At, At]\n") !=
               std::string::npos);
    callbacks.remove(first);
    callbacks.remove(first);   // removed already: no effect
    BOOST_TEST((callbacks.of(Event::before_step) == std::vector<const Callback*>{&early, &second}));
    BOOST_TEST(callbacks.of(Event::after_step).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
