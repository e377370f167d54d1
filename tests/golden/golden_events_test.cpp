// The recorded event sequences of the original's loop (2 epochs of 3 training and 2 validation batches), replayed through fit:
// A and Z note what they see before and after everybody else, a callback between them throws what the case says.

#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/show_training_loop.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "golden/golden_files.hpp"

#include "support/tape.hpp"

namespace {

using namespace drawpoint;
using golden::Json;
using Names = std::vector<std::string>;

struct NoWork {
    void begin_phase(bool) {}
    void forward(const test::TapeBatch&) {}
    void loss(const test::TapeBatch&) {}
    void backward() {}
    void opt_step() {}
    void zero_grad() {}
    [[nodiscard]] double loss_value() const { return 0; }
};

/// Notes the events that reach it.
class Seen final : public Callback {
public:
    explicit Seen(int order) : order_{order} {}
    Names events_seen;
    [[nodiscard]] std::string_view name() const noexcept override { return "Seen"; }
    [[nodiscard]] int order() const noexcept override { return order_; }
    [[nodiscard]] EventSet events() const noexcept override { return EventSet::all(); }
    void on(Event event, LoopState&) override { events_seen.emplace_back(name_of(event)); }

private:
    int order_;
};

/// Throws at the n-th call of an event, counted over the whole run.
class Thrower final : public Callback {
public:
    struct Throw {
        Event event;
        std::size_t occurrence;
        std::function<void()> act;
    };
    std::vector<Throw> throws;
    [[nodiscard]] std::string_view name() const noexcept override { return "ThrowCallback"; }
    [[nodiscard]] EventSet events() const noexcept override { return EventSet::all(); }
    void on(Event event, LoopState&) override {
        const std::size_t calls = ++calls_[event];
        for (const Throw& one : throws)
            if (one.event == event && one.occurrence == calls)
                one.act();
    }

private:
    std::map<Event, std::size_t> calls_;
};

// What the original's users throw, as a user of this loop throws it.
struct TwoArgs : std::runtime_error {
    TwoArgs(const char* first, int second_argument) : std::runtime_error{first}, second{second_argument} {}
    int second;
};
struct OwnText : std::exception {   // of no standard family, its text its own
    [[nodiscard]] const char* what() const noexcept override { return "m"; }
};

const std::map<std::string, std::function<void()>> exceptions{
    {"CancelFitException", [] { throw CancelFit{}; }},
    {"CancelEpochException", [] { throw CancelEpoch{}; }},
    {"CancelTrainException", [] { throw CancelTrain{}; }},
    {"CancelValidException", [] { throw CancelValid{}; }},
    {"CancelBatchException", [] { throw CancelBatch{}; }},
    {"CancelStepException", [] { throw CancelStep{}; }},
    {"CancelBackwardException", [] { throw CancelBackward{}; }},
    {R"(CancelBackwardException("why"))", [] { throw CancelBackward{}; }},
    {R"(CancelBatchException("why"))", [] { throw CancelBatch{}; }},
    {R"(ValueError("boom"))", [] { throw std::invalid_argument{"boom"}; }},
    {R"(KeyError("k"))", [] { throw std::out_of_range{"k"}; }},
    {"RuntimeError()", [] { throw std::runtime_error{""}; }},
    {"RuntimeError(\"two\\nlines\")", [] { throw std::runtime_error{"two\nlines"}; }},
    {R"(OSError(2,"No such file"))", [] { throw std::system_error{2, std::generic_category(), "No such file"}; }},
    {R"(TwoArgs("a",7))", [] { throw TwoArgs{"a", 7}; }},
    {R"(NoSuper("m"))", [] { throw OwnText{}; }},
    {"StopIteration()", [] { throw std::length_error{""}; }},
    {R"(StopIteration("x"))", [] { throw std::length_error{"x"}; }},
    {R"(IndexError("out of range"))", [] { throw std::range_error{"out of range"}; }},
    {"AssertionError(123)", [] { throw std::logic_error{"123"}; }},
};

/// What left a fit: the original's name of its type, and its text.
struct Escaped {
    std::string type, text;
    bool operator==(const Escaped&) const = default;
};

Escaped escaped_from(const std::exception_ptr& error) {
    const auto type_of = [](const std::exception& thrown) -> std::string {
        static const std::map<std::string, std::string> types{
            {typeid(CancelFit).name(), "CancelFitException"},
            {typeid(CancelEpoch).name(), "CancelEpochException"},
            {typeid(CancelTrain).name(), "CancelTrainException"},
            {typeid(CancelValid).name(), "CancelValidException"},
            {typeid(CancelBatch).name(), "CancelBatchException"},
            {typeid(CancelStep).name(), "CancelStepException"},
            {typeid(CancelBackward).name(), "CancelBackwardException"},
            {typeid(std::invalid_argument).name(), "ValueError"},
            {typeid(std::out_of_range).name(), "KeyError"},
            {typeid(std::runtime_error).name(), "RuntimeError"},
            {typeid(std::system_error).name(), "FileNotFoundError"},
            {typeid(TwoArgs).name(), "TwoArgs"},
            {typeid(OwnText).name(), "NoSuper"},
            {typeid(std::length_error).name(), "StopIteration"},
            {typeid(std::range_error).name(), "IndexError"},
            {typeid(std::logic_error).name(), "AssertionError"}};
        return types.at(typeid(thrown).name());
    };
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& thrown) {
        return {type_of(thrown), thrown.what()};
    }
}

struct Outcome {
    std::exception_ptr error;
    Names a, z;
    std::vector<std::size_t> drawn;
    std::string last_error;

    [[nodiscard]] std::string escaped_type() const { return error ? escaped_from(error).type : ""; }
};

/// The original's run of 2 epochs x 3 training and 2 validation batches.
struct Run {
    ManualClock clock{0};
    Seen a{-50}, z{90};
    Thrower thrower;
    CallbackList callbacks;
    test::Tape train{clock, test::Tape::Epochs(2, std::vector<test::DrawCost>(3))};
    test::Tape valid{clock, test::Tape::Epochs(2, std::vector<test::DrawCost>(2))};
    std::size_t epochs = 2;

    Outcome operator()() {
        NoWork learner;
        callbacks.add(z), callbacks.add(thrower), callbacks.add(a);
        Outcome outcome;
        const FitOptions options{.epochs = epochs};
        try {
            test::run_alone(fit(learner, train, valid, options, callbacks));
        } catch (...) {
            outcome.error = std::current_exception();
        }
        outcome.a = a.events_seen;
        outcome.z = z.events_seen;
        outcome.drawn = {train.drawn, valid.drawn};
        outcome.last_error = callbacks.last_error();
        return outcome;
    }
};

Outcome run_with(std::vector<Thrower::Throw> throws) {
    Run run;
    run.thrower.throws = std::move(throws);
    return run();
}

Names words(const std::string& text) {
    std::istringstream in{text};
    return {std::istream_iterator<std::string>{in}, {}};
}

Names sequence(const Json& one, const char* who) {
    const auto text = one.at(who).get<std::string>();
    return words(text == "=A" ? one.at("A").get<std::string>() : text);
}

std::vector<Json> read_all(const char* file) {
    std::vector<Json> all;
    for (const golden::Path& folder : golden::folders())
        all.push_back(golden::read_json(folder / "g3_events" / file));
    return all;
}

/// The cases of one file, over all folders; each folder has some.
std::vector<Json> cases_of(const char* file, const char* list = "cases") {
    std::vector<Json> all;
    for (const Json& json : read_all(file)) {
        BOOST_REQUIRE(!json.at(list).empty());
        std::ranges::copy(json.at(list), std::back_inserter(all));
    }
    return all;
}

std::string text_of(const Json& one) {
    std::string text;
    for (const char* key : {"exception", "event", "occurrence", "then_exception", "then_event", "case"})
        if (one.contains(key))
            text += one.at(key).dump() + " ";
    return text;
}

/// Whether this cancel of a batch, step or backward pass is thrown in before_draw: there ours skips the draw.
bool skips_a_draw(const Json& one) {
    const auto name = one.at("exception").get<std::string>();
    return one.at("event") == "before_draw" &&
           (name == "CancelBatchException" || name == "CancelStepException" || name == "CancelBackwardException");
}

/// Whether the original fails while it looks for the text of an exception that has none.
bool failed_over_no_text(const Json& one) {
    return one.at("escaped").is_object() && one.at("escaped").at("str") == "tuple index out of range";
}

void check_sequences(const Outcome& ours, const Json& one) {
    BOOST_TEST(ours.a == sequence(one, "A"), boost::test_tools::per_element());
    BOOST_TEST(ours.z == sequence(one, "Z"), boost::test_tools::per_element());
    if (one.contains("drawn"))
        BOOST_TEST(ours.drawn == one.at("drawn").get<std::vector<std::size_t>>(), boost::test_tools::per_element());
}

/// The plain run without what the batch of the n-th draw fires.
Names without_batch_of_draw(std::size_t n) {
    Names all = Run{}().a;
    auto at = all.begin();
    for (std::size_t draw = 0; draw < n; ++draw)
        at = std::find(draw == 0 ? at : at + 1, all.end(), "before_draw");
    const auto batch_end = std::find(at, all.end(), "after_batch") + 1;
    all.erase(at + 1, batch_end);
    return all;
}

/// Throws the case's exceptions and returns what happened.
Outcome replay(const Json& one) {
    std::vector<Thrower::Throw> throws{{event_named(one.at("event").get<std::string>()),
                                        one.at("occurrence").get<std::size_t>(),
                                        exceptions.at(one.at("exception").get<std::string>())}};
    if (one.contains("then_exception"))
        throws.push_back({event_named(one.at("then_event").get<std::string>()), 1,
                          exceptions.at(one.at("then_exception").get<std::string>())});
    return run_with(std::move(throws));
}

/// A callback that is in a list for its name alone.
class Named final : public Callback {
public:
    Named(std::string name, int order, EventSet events) : name_{std::move(name)}, order_{order}, events_{events} {}
    [[nodiscard]] std::string_view name() const noexcept override { return name_; }
    [[nodiscard]] int order() const noexcept override { return order_; }
    [[nodiscard]] EventSet events() const noexcept override { return events_; }
    void on(Event, LoopState&) override {}

private:
    std::string name_;
    int order_;
    EventSet events_;
};

/// The callbacks named in a recorded text of the loop, with the events it lists them at.
std::map<std::string, EventSet> callbacks_in(const std::string& text) {
    std::map<std::string, EventSet> found;
    std::istringstream in{text};
    for (std::string line; std::getline(in, line);) {
        std::ranges::replace_if(
            line, [](char c) { return std::string_view{"-:[],"}.find(c) != std::string::npos; }, ' ');
        const Names all = words(line);
        if (all.empty() || all[0].starts_with("Start") || all[0].starts_with("End") || all[0].starts_with("**"))
            continue;
        for (std::size_t i = 1; i < all.size(); ++i)
            found[all[i]] |= EventSet{event_named(all[0])};
    }
    return found;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_events)

BOOST_AUTO_TEST_CASE(the_events_are_the_originals_in_its_order) {
    for (const Json& json : read_all("cancels.json")) {
        Names ours, inner;
        for (std::size_t e = 0; e < event_count; ++e) {
            ours.emplace_back(name_of(static_cast<Event>(e)));
            if (inner_loop_events.contains(static_cast<Event>(e)))
                inner.push_back(ours.back());
        }
        BOOST_TEST(ours == json.at("events").get<Names>(), boost::test_tools::per_element());
        BOOST_TEST(inner == json.at("inner_loop_events").get<Names>(), boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(a_plain_run_fires_what_the_original_fires) {
    for (const Json& json : read_all("plain_run_with_before_draw.json"))
        check_sequences(Run{}(), json.at("run"));
}

BOOST_AUTO_TEST_CASE(without_before_draw_the_sequence_is_stock_fastais) {
    for (const Json& json : read_all("plain_run_stock_fastai.json")) {
        Outcome ours = Run{}();
        std::erase(ours.a, "before_draw");
        BOOST_TEST(ours.a == sequence(json.at("run"), "A"), boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(without_the_two_events_after_a_backward_pass_the_sequence_is_legacy_fastais) {
    Outcome ours = run_with({{Event::before_backward, 2, exceptions.at("CancelBackwardException")}});
    BOOST_TEST(std::ranges::count(ours.a, "after_cancel_backward") == 1);
    for (Names* seen : {&ours.a, &ours.z}) {
        std::erase(*seen, "after_backward"), std::erase(*seen, "after_cancel_backward");
        Names legacy = Run{}().a;
        std::erase(legacy, "after_backward");
        if (seen == &ours.z)   // the thrower kept the second from it
            legacy.erase(std::find(std::find(legacy.begin(), legacy.end(), "before_backward") + 1, legacy.end(),
                                   "before_backward"));
        BOOST_TEST(*seen == legacy, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(a_cancel_reaches_exactly_as_far_as_the_originals) {
    for (const Json& one : cases_of("cancels.json"))
        BOOST_TEST_CONTEXT(text_of(one)) {
            if (skips_a_draw(one) || (failed_over_no_text(one) && one.at("event") == "before_backward"))
                continue;   // ours is right where the original fails: the next tests
            const Outcome ours = replay(one);
            check_sequences(ours, one);
            std::string escaped = one.at("escaped").is_null() ? "" : one.at("escaped").at("type").get<std::string>();
            if (failed_over_no_text(one))   // every argument-less CancelBackwardException there; the very cancel here
                escaped = "CancelBackwardException";
            BOOST_TEST(ours.escaped_type() == escaped);
            BOOST_TEST(ours.last_error == "");
        }
}

BOOST_AUTO_TEST_CASE(a_cancel_of_a_batch_step_or_backward_in_before_draw_skips_the_draw_and_uses_up_its_turn) {
    for (const char* cancel : {"CancelBatchException", "CancelStepException", "CancelBackwardException"})
        BOOST_TEST_CONTEXT(cancel) {
            const Outcome ours = run_with({{Event::before_draw, 2, exceptions.at(cancel)}});
            BOOST_TEST(!ours.error);
            const Names expected = without_batch_of_draw(2);
            BOOST_TEST(ours.a == expected, boost::test_tools::per_element());
            BOOST_TEST(ours.drawn == (std::vector<std::size_t>{5, 4}), boost::test_tools::per_element());
        }
}

BOOST_AUTO_TEST_CASE(a_cancel_thrown_after_a_cancelled_backward_goes_to_its_own_level) {
    const auto second = [](const char* cancel) {
        return run_with({{Event::before_backward, 1, exceptions.at("CancelBackwardException")},
                         {Event::after_cancel_backward, 1, exceptions.at(cancel)}});
    };
    const Names start{"after_create", "before_fit", "before_epoch", "before_train",    "before_draw",
                      "before_batch", "after_pred", "after_loss",   "before_backward", "after_cancel_backward"};
    const std::map<std::string, std::string> next{{"CancelEpochException", "after_cancel_epoch"},
                                                  {"CancelTrainException", "after_cancel_train"},
                                                  {"CancelBatchException", "after_cancel_batch"},
                                                  {"CancelFitException", "after_cancel_fit"}};
    for (const auto& [cancel, event] : next) {
        const Outcome ours = second(cancel.c_str());
        BOOST_TEST(!ours.error);
        Names expected = start;
        expected.push_back(event);
        BOOST_TEST(Names(ours.a.begin(), ours.a.begin() + 11) == expected, boost::test_tools::per_element());
    }
    for (const char* cancel : {"CancelBackwardException", "CancelValidException", "CancelStepException"}) {
        const Outcome ours = second(cancel);
        BOOST_TEST(ours.escaped_type() == cancel);
        BOOST_TEST(ours.a == start, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(an_ordinary_exception_leaves_with_its_type_kept_and_its_message_wrapped) {
    std::map<std::string, Json> of_event;   // where an exception of this event leaves the original
    for (const Json& one : cases_of("ordinary_exceptions.json"))
        if (one.at("exception") == R"(ValueError("boom"))")
            of_event[one.at("event").get<std::string>()] = one;
    for (const Json& one : cases_of("ordinary_exceptions.json"))
        BOOST_TEST_CONTEXT(text_of(one)) {
            const Outcome ours = replay(one);
            const auto exception = one.at("exception").get<std::string>();
            const bool swallowed = exception.starts_with("StopIteration");   // by the original, which then goes on
            const Json& expected = swallowed ? of_event.at(one.at("event").get<std::string>()) : one;
            check_sequences(ours, expected);
            if (one.at("escaped").is_null() && !swallowed) {
                BOOST_TEST(!ours.error);   // a cancel, caught at its level
                continue;
            }
            BOOST_REQUIRE(ours.error);
            const Escaped escaped = escaped_from(ours.error);
            const std::string type = exception.substr(0, exception.find('('));
            BOOST_TEST((type == "OSError" ? "FileNotFoundError" : type) == escaped.type);
            if (type.starts_with("Cancel")) {   // untouched, with or without a text of its own
                BOOST_TEST(escaped.text.find("Exception") == std::string::npos);
                BOOST_TEST(ours.last_error == "");
                continue;
            }
            const std::string sentence = "Exception occured in `ThrowCallback` when calling event `" +
                                         one.at("event").get<std::string>() + "`:\n\t";
            BOOST_TEST(ours.last_error.starts_with(sentence));
            if (type == "NoSuper")   // no standard type, so its own text stays
                BOOST_TEST(escaped.text == "m");
            else
                BOOST_TEST(escaped.text == ours.last_error);
            if (type == "OSError")   // the original's says "2", its first argument
                BOOST_TEST(escaped.text == sentence + "No such file: No such file or directory");
            else if (failed_over_no_text(one) || swallowed)
                BOOST_TEST(ours.last_error.substr(sentence.size()) == (exception.ends_with("()") ? "" : "x"));
            else
                BOOST_TEST(ours.last_error == one.at("escaped").at("args").at(0).get<std::string>());
        }
}

BOOST_AUTO_TEST_CASE(a_short_source_ends_its_pass_and_a_failing_one_leaves_with_its_own_exception) {
    const auto draws = [](std::size_t n) { return test::Tape::Epochs(2, std::vector<test::DrawCost>(n)); };
    for (const Json& one : cases_of("loaders.json"))
        BOOST_TEST_CONTEXT(text_of(one)) {
            Run run;
            const auto name = one.at("case").get<std::string>();
            const auto replace = [](test::Tape& tape, test::Tape with) {
                std::destroy_at(&tape);
                std::construct_at(&tape, std::move(with));
            };
            if (name == "train yields 2, claims 3") {
                replace(run.train, test::Tape{run.clock, draws(2)});
                run.train.claimed_size = 3;
            } else if (name == "train yields 5, claims 3") {
                replace(run.train, test::Tape{run.clock, draws(5)});
                run.train.claimed_size = 3;
            } else if (name == "valid yields 1, claims 2") {
                replace(run.valid, test::Tape{run.clock, draws(1)});
                run.valid.claimed_size = 2;
            } else if (name == "train loader raises OSError at item 1") {
                run.train.failure = std::make_exception_ptr(std::runtime_error{"cannot read item"});
                run.train.fails_at = 1;
            }   // "train exact", and "valid empty", whose recorded run has the full two validation batches
            const Outcome ours = run();
            if (name.find("claims") == name.npos || name.find('5') != name.npos) {
                check_sequences(ours, one);
                BOOST_TEST(bool(ours.error) == !one.at("escaped").is_null());
                BOOST_TEST(ours.last_error == "");
                if (ours.error)
                    BOOST_TEST(escaped_from(ours.error).text == one.at("escaped").at("str").get<std::string>());
                continue;
            }
            // There a StopIteration leaves the fit at the draw that finds nothing; here the pass is over.
            BOOST_TEST(!ours.error);
            const Names theirs = sequence(one, "A");
            BOOST_REQUIRE_GT(ours.a.size(), theirs.size());
            BOOST_TEST(Names(ours.a.begin(), ours.a.begin() + static_cast<std::ptrdiff_t>(theirs.size())) == theirs,
                       boost::test_tools::per_element());
            BOOST_TEST(ours.a[theirs.size()] == (name.starts_with("train") ? "after_train" : "after_validate"));
            BOOST_TEST(ours.a.back() == "after_fit");
            BOOST_TEST(ours.drawn[0] == (name.starts_with("train") ? 4u : 6u));
            BOOST_TEST(ours.drawn[1] == (name.starts_with("train") ? 4u : 2u));
        }
}

BOOST_AUTO_TEST_CASE(run_run_train_and_run_valid_gate_what_they_gate_in_the_original) {
    for (const Json& one : cases_of("gating.json", "fit_cases")) {
        Run run;
        run.epochs = one.at("epochs").get<std::size_t>();
        run.z.run = one.at("run").get<bool>();
        run.z.run_train = one.at("run_train").get<bool>(), run.z.run_valid = one.at("run_valid").get<bool>();
        Outcome ours = run();
        std::erase(ours.a, "after_create"), std::erase(ours.z, "after_create");   // recorded without
        BOOST_TEST(ours.a == words(one.at("A_all_true").get<std::string>()), boost::test_tools::per_element());
        BOOST_TEST(ours.z == words(one.at("Z_gated").get<std::string>()), boost::test_tools::per_element());
        BOOST_TEST(run.z.run == one.at("run_after_fit").get<bool>());
    }
}

BOOST_AUTO_TEST_CASE(outside_any_pass_training_counts_as_unset) {
    for (const Json& one : cases_of("gating.json", "by_hand_cases")) {
        Seen seen{0};
        seen.run_train = one.at("run_train").get<bool>(), seen.run_valid = one.at("run_valid").get<bool>();
        CallbackList callbacks;
        callbacks.add(seen);
        LoopState state;
        if (one.at("training").is_boolean())
            state.training = one.at("training").get<bool>();
        LoopTrack nowhere{nullptr};
        for (std::size_t e = 0; e < event_count; ++e)
            callbacks.fire(static_cast<Event>(e), state, nowhere);
        BOOST_TEST(seen.events_seen == words(one.at("seen").get<std::string>()), boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(an_unknown_event_is_missing_in_the_originals_words) {
    for (const Json& json : read_all("gating.json"))
        BOOST_CHECK_EXCEPTION(static_cast<void>(event_named("no_such_event")), std::invalid_argument,
                              [&](const std::invalid_argument& error) {
                                  return error.what() == json.at("unknown_event_call").at("str").get<std::string>();
                              });
}

BOOST_AUTO_TEST_CASE(the_training_loop_is_shown_as_the_original_shows_it) {
    for (const golden::Path& folder : golden::folders()) {
        const auto orders =
            golden::read_json(folder / "g3_events/callback_orders.json").get<std::map<std::string, int>>();
        for (const char* name : {"default", "throughput", "simple", "orders_1"})
            BOOST_TEST_CONTEXT(name) {
                const golden::Path file = folder / ("g3_events/show_training_loop_" + std::string{name} + ".txt");
                const std::string text = golden::read_text(file);
                CallbackList callbacks;
                std::deque<Named> kept;
                const auto add = [&](const std::string& callback, int order, EventSet events) {
                    callbacks.add(kept.emplace_back(callback, order, events));
                };
                auto found = callbacks_in(text);
                const golden::Path input = golden::Path{file}.replace_extension(".input.json");
                if (std::filesystem::exists(input)) {
                    const Json json = golden::read_json(input);
                    for (const Json& one : json.at("callbacks_in_add_order")) {
                        EventSet events;
                        for (const Json& event : one.at(2))
                            events |= EventSet{event_named(event.get<std::string>())};
                        add(one.at(0).get<std::string>(), one.at(1).get<int>(), events);
                        found.erase(one.at(0).get<std::string>());
                    }
                }
                for (const auto& [callback, events] : found)
                    add(callback, callback == "ProgressCallback" ? 60 : orders.at(callback), events);
                BOOST_TEST(show_training_loop(callbacks) == text);
            }
    }
}

BOOST_AUTO_TEST_SUITE_END()
