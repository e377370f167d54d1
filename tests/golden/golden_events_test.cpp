// Recorded event sequences of the original's loop, replayed through fit. A and Z record what they see before and after
// all other callbacks; a callback between them throws what the case says.

#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/show_training_loop.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "golden/exceptions.hpp"
#include "golden/replays.hpp"

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

/// Records the events that reach it.
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

struct Outcome {
    std::exception_ptr error;
    Names a, z;
    std::vector<std::size_t> drawn;
    std::string last_error;

    [[nodiscard]] std::string escaped_type() const { return error ? golden::escaped_from(error).type : ""; }
};

/// The number of epochs of a recorded run, and of batches per epoch.
struct Shape {
    std::size_t epochs = 2, train = 3, valid = 2;

    [[nodiscard]] bool draw_is_of_training(std::size_t n) const { return (n - 1) % (train + valid) < train; }
};

Shape shape_of(const Json& document) {
    static const std::regex form{"(\\d+) epochs? x (\\d+) train\\w*( batch\\w*)? \\+ (\\d+) valid.*"};
    const auto text = document.at("shape").get<std::string>();
    std::smatch found;
    if (!std::regex_match(text, found, form))
        throw std::runtime_error("unknown shape " + text);
    return {std::stoul(found[1]), std::stoul(found[2]), std::stoul(found[4])};
}

/// A run like the original's.
struct Run {
    explicit Run(const Shape& of = {}) : shape{of} {}
    Shape shape;
    ManualClock clock{0};
    Seen a{-50}, z{90};
    Thrower thrower;
    CallbackList callbacks;
    test::Tape train = tape(shape.train), valid = tape(shape.valid);

    test::Tape tape(std::size_t batches) {
        return test::Tape{clock, test::Tape::Epochs(shape.epochs, std::vector<test::DrawCost>(batches))};
    }
    Outcome operator()() {
        NoWork learner;
        callbacks.add(z), callbacks.add(thrower), callbacks.add(a);
        Outcome outcome;
        const FitOptions options{.epochs = shape.epochs};
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

Outcome run_with(std::vector<Thrower::Throw> throws, const Shape& shape = {}) {
    Run run{shape};
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

std::vector<golden::Document> documents(const char* kind) { return golden::documents("g3_events", kind); }

std::string text_of(const Json& one) {
    std::string text;
    for (const char* key : {"exception", "event", "occurrence", "then_exception", "then_event", "case"})
        if (one.contains(key))
            text += one.at(key).dump() + " ";
    return text;
}

golden::Thrown thrown_by(const Json& one) { return golden::thrown_in(one.at("exception").get<std::string>()); }

/// Replays the recorded exceptions that satisfy `is_meant`; another test replays the others.
template <class Predicate, class Function>
void replay_exceptions(Predicate is_meant, Function check) {
    golden::Replays replays{"golden_events"};
    for (const auto& [path, document] : documents("exceptions"))
        for (const Json& one : document.at("cases"))
            if (!one.contains("exception") || is_meant(one))
                replays(path, text_of(one), [&] {
                    golden::check_keys(one, {"exception", "event", "occurrence", "escaped", "A", "Z", "drawn", "where",
                                             "then_exception", "then_event"});
                    check(one, shape_of(document));
                });
}

/// Whether this cancel of a batch, step or backward pass is thrown in before_draw; our loop then skips the draw.
bool skips_a_draw(const Json& one) {
    const std::string name = thrown_by(one).name;
    return one.at("event") == "before_draw" &&
           (name == "CancelBatchException" || name == "CancelStepException" || name == "CancelBackwardException");
}

/// Whether the original failed because it looked for the text of an exception without one.
bool failed_over_no_text(const Json& one) {
    return one.at("escaped").is_object() && one.at("escaped").at("str") == "tuple index out of range";
}

/// Whether that failure kept the original from going on after a cancelled backward pass.
bool failed_to_cancel_a_backward(const Json& one) {
    return thrown_by(one).name == "CancelBackwardException" && one.at("event") == "before_backward" &&
           failed_over_no_text(one);
}

void check_sequences(const Outcome& ours, const Json& one) {
    BOOST_TEST(ours.a == sequence(one, "A"), boost::test_tools::per_element());
    BOOST_TEST(ours.z == sequence(one, "Z"), boost::test_tools::per_element());
    if (one.contains("drawn"))
        BOOST_TEST(ours.drawn == one.at("drawn").get<std::vector<std::size_t>>(), boost::test_tools::per_element());
}

/// The position of the n-th `event`.
Names::iterator nth(Names& all, const std::string& event, std::size_t n) {
    auto at = all.begin();
    for (std::size_t found = 0; at != all.end(); ++at)
        if (*at == event && ++found == n)
            return at;
    throw std::runtime_error("no event " + event + " of number " + std::to_string(n));
}

/// The events of an undisturbed run, except those of the batch from the n-th draw.
Names without_batch_of_draw(const Shape& shape, std::size_t n) {
    Names all = Run{shape}().a;
    const auto at = nth(all, "before_draw", n);
    all.erase(at + 1, std::find(at, all.end(), "after_batch") + 1);
    return all;
}

/// Runs a fit that throws the case's exceptions, and returns what happened.
Outcome replay(const Json& one, const Shape& shape) {
    std::vector<Thrower::Throw> throws{{event_named(one.at("event").get<std::string>()),
                                        one.at("occurrence").get<std::size_t>(),
                                        golden::throwing(one.at("exception").get<std::string>())}};
    if (one.contains("then_exception"))
        throws.push_back({event_named(one.at("then_event").get<std::string>()), 1,
                          golden::throwing(one.at("then_exception").get<std::string>())});
    return run_with(std::move(throws), shape);
}

/// For a CancelBackward without arguments, over which the original fails: our loop must give the recorded events, then
/// after_cancel_backward, and then go on as the second exception thrown there says.
void check_cancelled_backward(const Json& one, const Shape& shape) {
    const Outcome ours = replay(one, shape);
    Names expected = sequence(one, "A");
    expected.emplace_back("after_cancel_backward");
    if (!one.contains("then_exception")) {
        Names plain = Run{shape}().a;
        const auto rest = nth(plain, "before_backward", one.at("occurrence").get<std::size_t>()) + 1;
        expected.insert(expected.end(), rest, plain.end());
        BOOST_TEST(!ours.error);
        BOOST_TEST(ours.a == expected, boost::test_tools::per_element());
        return;
    }
    BOOST_REQUIRE(one.at("then_event") == "after_cancel_backward");
    static const std::map<std::string, std::string> next{{"CancelEpochException", "after_cancel_epoch"},
                                                         {"CancelTrainException", "after_cancel_train"},
                                                         {"CancelBatchException", "after_cancel_batch"},
                                                         {"CancelFitException", "after_cancel_fit"}};
    const auto name = golden::thrown_in(one.at("then_exception").get<std::string>()).name;
    if (const auto level = next.find(name); level != next.end()) {
        BOOST_TEST(!ours.error);
        expected.push_back(level->second);
        BOOST_REQUIRE_GE(ours.a.size(), expected.size());
        BOOST_TEST(Names(ours.a.begin(), ours.a.begin() + static_cast<std::ptrdiff_t>(expected.size())) == expected,
                   boost::test_tools::per_element());
    } else {
        BOOST_TEST(ours.escaped_type() == name);
        BOOST_TEST(ours.a == expected, boost::test_tools::per_element());
    }
}

/// A callback that is only there for its name.
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

/// The callbacks named in a recorded text of the loop, with the events that it lists them for.
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

/// Orders of fastai's and fastxtend's callbacks: those recorded in all folders, and those in a text as "Name(order)".
std::map<std::string, double> orders_in(const std::string& text) {
    std::map<std::string, double> orders{{"ProgressCallback", 60}};   // from fastai
    for (const auto& [path, document] : documents("orders"))
        for (const auto& [callback, order] : document.items())
            orders[callback] = golden::number(order);
    static const std::regex form{"(\\w+)\\((-?[\\d.]+)\\)"};
    for (std::sregex_iterator at{text.begin(), text.end(), form}; at != std::sregex_iterator{}; ++at)
        orders[(*at)[1]] = std::stod((*at)[2]);
    return orders;
}

/// The events in a JSON list; a text that begins with "all " means all.
EventSet events_in(const Json& json) {
    if (json.is_string() && json.get<std::string>().starts_with("all "))
        return EventSet::all();
    EventSet events;
    for (const Json& event : json)
        events |= EventSet{event_named(event.get<std::string>())};
    return events;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_events)

BOOST_AUTO_TEST_CASE(the_events_are_the_originals_in_its_order) {
    golden::Replays replays{"golden_events"};
    for (const char* kind : {"exceptions", "loaders", "gating"})
        for (const auto& [path, document] : documents(kind))
            replays(path, "events", [&] {
                Names ours, inner;
                for (std::size_t e = 0; e < event_count; ++e) {
                    ours.emplace_back(name_of(static_cast<Event>(e)));
                    if (inner_loop_events.contains(static_cast<Event>(e)))
                        inner.push_back(ours.back());
                }
                BOOST_TEST(ours == document.value("events", ours), boost::test_tools::per_element());
                BOOST_TEST(inner == document.value("inner_loop_events", inner), boost::test_tools::per_element());
            });
}

/// Whether a recorded undisturbed run is from plain fastai, which has no event before a draw.
bool is_stock(const Json& document) {
    return std::ranges::count(sequence(document.at("run"), "A"), "before_draw") == 0;
}

BOOST_AUTO_TEST_CASE(a_plain_run_fires_what_the_original_fires) {
    golden::Replays replays{"golden_events"};
    for (const auto& [path, document] : documents("run"))
        if (!is_stock(document))
            replays(path, [&] { check_sequences(Run{shape_of(document)}(), document.at("run")); });
}

BOOST_AUTO_TEST_CASE(without_before_draw_the_sequence_is_stock_fastais) {
    golden::Replays replays{"golden_events"};
    for (const auto& [path, document] : documents("run"))
        if (is_stock(document))
            replays(path, [&] {
                Outcome ours = Run{shape_of(document)}();
                std::erase(ours.a, "before_draw");
                BOOST_TEST(ours.a == sequence(document.at("run"), "A"), boost::test_tools::per_element());
            });
}

BOOST_AUTO_TEST_CASE(without_the_two_events_after_a_backward_pass_the_sequence_is_legacy_fastais) {
    Outcome ours = run_with({{Event::before_backward, 2, golden::throwing("CancelBackwardException")}});
    BOOST_TEST(std::ranges::count(ours.a, "after_cancel_backward") == 1);
    for (Names* seen : {&ours.a, &ours.z}) {
        std::erase(*seen, "after_backward"), std::erase(*seen, "after_cancel_backward");
        Names legacy = Run{}().a;
        std::erase(legacy, "after_backward");
        if (seen == &ours.z)   // the thrower kept the second event from it
            legacy.erase(std::find(std::find(legacy.begin(), legacy.end(), "before_backward") + 1, legacy.end(),
                                   "before_backward"));
        BOOST_TEST(*seen == legacy, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(a_cancel_reaches_exactly_as_far_as_the_originals) {
    const auto is_right = [](const Json& one) {   // where the original fails, ours goes on: see the next tests
        return thrown_by(one).is_cancel() && !skips_a_draw(one) && !failed_to_cancel_a_backward(one);
    };
    replay_exceptions(is_right, [](const Json& one, const Shape& shape) {
        const Outcome ours = replay(one, shape);
        check_sequences(ours, one);
        std::string escaped = one.at("escaped").is_null() ? "" : one.at("escaped").at("type").get<std::string>();
        // the original fails for every CancelBackwardException without arguments; ours lets it through
        if (failed_over_no_text(one))
            escaped = "CancelBackwardException";
        BOOST_TEST(ours.escaped_type() == escaped);
        if (ours.error)   // unchanged, with or without a text of its own
            BOOST_TEST(golden::escaped_from(ours.error).text.find("Exception") == std::string::npos);
        BOOST_TEST(ours.last_error == "");
    });
}

BOOST_AUTO_TEST_CASE(a_cancelled_backward_pass_goes_on_where_the_original_fails_over_its_missing_text) {
    replay_exceptions(failed_to_cancel_a_backward, check_cancelled_backward);
}

void check_skipped_draw(const Outcome& ours, const Shape& shape, std::size_t n) {
    BOOST_TEST(!ours.error);
    const Names expected = without_batch_of_draw(shape, n);
    BOOST_TEST(ours.a == expected, boost::test_tools::per_element());
    std::vector<std::size_t> drawn{shape.epochs * shape.train, shape.epochs * shape.valid};
    --drawn[shape.draw_is_of_training(n) ? 0 : 1];
    BOOST_TEST(ours.drawn == drawn, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_cancel_of_a_batch_step_or_backward_in_before_draw_skips_the_draw_and_uses_up_its_turn) {
    for (const char* cancel : {"CancelBatchException", "CancelStepException", "CancelBackwardException"})
        BOOST_TEST_CONTEXT(cancel)
    check_skipped_draw(run_with({{Event::before_draw, 2, golden::throwing(cancel)}}), {}, 2);
    replay_exceptions(skips_a_draw, [](const Json& one, const Shape& shape) {
        if (one.contains("then_exception"))
            throw std::runtime_error("a second exception after a skipped draw");
        check_skipped_draw(replay(one, shape), shape, one.at("occurrence").get<std::size_t>());
    });
}

BOOST_AUTO_TEST_CASE(a_cancel_thrown_after_a_cancelled_backward_goes_to_its_own_level) {
    const auto second = [](const char* cancel) {
        return run_with({{Event::before_backward, 1, golden::throwing("CancelBackwardException")},
                         {Event::after_cancel_backward, 1, golden::throwing(cancel)}});
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
    const auto is_ordinary = [](const Json& one) { return !thrown_by(one).is_cancel(); };
    replay_exceptions(is_ordinary, [](const Json& one, const Shape& shape) {
        if (one.contains("then_exception"))
            throw std::runtime_error("a second exception after one that leaves the fit");
        const golden::Thrown thrown = thrown_by(one);
        const Outcome ours = replay(one, shape);
        const auto event = one.at("event").get<std::string>();
        // the original swallows it and goes on; here it is an exception like any other
        if (thrown.name == "StopIteration") {
            Names seen = Run{shape}().a;
            seen.erase(nth(seen, event, one.at("occurrence").get<std::size_t>()) + 1, seen.end());
            BOOST_TEST(ours.a == seen, boost::test_tools::per_element());
            seen.pop_back();   // the thrower kept it from the last callback
            BOOST_TEST(ours.z == seen, boost::test_tools::per_element());
        } else {
            check_sequences(ours, one);
        }
        BOOST_REQUIRE(ours.error);
        const golden::Escaped escaped = golden::escaped_from(ours.error);
        BOOST_TEST(escaped.type == thrown.name);
        const std::string sentence = "Exception occured in `ThrowCallback` when calling event `" + event + "`:\n\t";
        if (thrown.name == "OSError") {   // the original prints its first argument, the number
            const std::string text = thrown.arguments[1];
            const std::string meaning = std::generic_category().message(thrown.arguments[0].get<int>());
            BOOST_TEST(ours.last_error.starts_with(sentence));
            BOOST_TEST(escaped.text == sentence + text + ": " + meaning);
            return;
        }
        BOOST_TEST(ours.last_error == sentence + thrown.text());
        // not a standard type
        BOOST_TEST(escaped.text == (thrown.name == "NoSuper" ? thrown.text() : ours.last_error));
        if (one.at("escaped").is_object() && !failed_over_no_text(one))
            BOOST_TEST(ours.last_error == one.at("escaped").at("args").at(0).get<std::string>());
    });
}

/// The behaviour of a recorded loader, from the name of its case.
struct Loader {
    bool of_training = true;
    std::optional<std::size_t> yields, claims, fails_at;
};

Loader loader_of(const std::string& name) {
    static const std::regex sizes{"(train|valid) yields (\\d+), claims (\\d+)"},
        failure{"(train|valid) loader raises OSError at item (\\d+)"}, plain{"(train|valid) (exact|empty)"};
    std::smatch found;
    if (std::regex_match(name, found, sizes))
        return {found[1] == "train", std::stoul(found[2]), std::stoul(found[3]), {}};
    if (std::regex_match(name, found, failure))
        return {found[1] == "train", {}, {}, std::stoul(found[2])};
    if (std::regex_match(name, found, plain))   // "empty": the recorded run has all validation batches
        return {found[1] == "train", {}, {}, {}};
    throw std::runtime_error("unknown loader " + name);
}

void check_short_source(const Outcome& ours, const Json& one, const Loader& loader, const Shape& shape) {
    // In the original a StopIteration leaves the fit at the draw that finds nothing; here the pass ends.
    BOOST_TEST(!ours.error);
    const Names theirs = sequence(one, "A");
    BOOST_REQUIRE_GT(ours.a.size(), theirs.size());
    BOOST_TEST(Names(ours.a.begin(), ours.a.begin() + static_cast<std::ptrdiff_t>(theirs.size())) == theirs,
               boost::test_tools::per_element());
    BOOST_TEST(ours.a[theirs.size()] == (loader.of_training ? "after_train" : "after_validate"));
    BOOST_TEST(ours.a.back() == "after_fit");
    BOOST_TEST(ours.drawn[0] == shape.epochs * (loader.of_training ? *loader.yields : shape.train));
    BOOST_TEST(ours.drawn[1] == shape.epochs * (loader.of_training ? shape.valid : *loader.yields));
}

BOOST_AUTO_TEST_CASE(a_short_source_ends_its_pass_and_a_failing_one_leaves_with_its_own_exception) {
    golden::Replays replays{"golden_events"};
    for (const auto& [path, document] : documents("loaders"))
        for (const Json& one : document.at("cases"))
            replays(path, text_of(one), [&] {
                golden::check_keys(one, {"case", "escaped", "drawn", "A", "Z"});
                const Shape shape = shape_of(document);
                const Loader loader = loader_of(one.at("case").get<std::string>());
                Run run{shape};
                test::Tape& tape = loader.of_training ? run.train : run.valid;
                const bool is_plain =
                    loader.yields == 0 && loader.claims == 0;   // recorded as the run with all batches
                if (loader.yields && !is_plain) {
                    std::destroy_at(&tape);
                    std::construct_at(&tape, run.tape(*loader.yields));
                    tape.claimed_size = loader.claims;
                }
                if (loader.fails_at) {
                    tape.failure =
                        std::make_exception_ptr(std::runtime_error{one.at("escaped").at("str").get<std::string>()});
                    tape.fails_at = *loader.fails_at;
                }
                const Outcome ours = run();
                if (loader.yields < loader.claims) {
                    check_short_source(ours, one, loader, shape);
                    return;
                }
                check_sequences(ours, one);
                BOOST_TEST(bool(ours.error) == !one.at("escaped").is_null());
                BOOST_TEST(ours.last_error == "");
                if (ours.error)
                    BOOST_TEST(golden::escaped_from(ours.error).text == one.at("escaped").at("str").get<std::string>());
            });
}

BOOST_AUTO_TEST_CASE(run_run_train_and_run_valid_gate_what_they_gate_in_the_original) {
    golden::Replays replays{"golden_events"};
    for (const auto& [path, document] : documents("gating"))
        for (const Json& one : document.value("fit_cases", Json::array()))
            replays(path, one.dump().substr(0, 80), [&] {
                golden::check_keys(
                    one, {"run", "run_train", "run_valid", "epochs", "A_all_true", "Z_gated", "run_after_fit"});
                Shape shape = shape_of(document);
                shape.epochs = one.at("epochs").get<std::size_t>();
                Run run{shape};
                run.z.run = one.at("run").get<bool>();
                run.z.run_train = one.at("run_train").get<bool>(), run.z.run_valid = one.at("run_valid").get<bool>();
                Outcome ours = run();
                std::erase(ours.a, "after_create"), std::erase(ours.z, "after_create");   // recorded without
                BOOST_TEST(ours.a == words(one.at("A_all_true").get<std::string>()), boost::test_tools::per_element());
                BOOST_TEST(ours.z == words(one.at("Z_gated").get<std::string>()), boost::test_tools::per_element());
                BOOST_TEST(run.z.run == one.at("run_after_fit").get<bool>());
            });
}

BOOST_AUTO_TEST_CASE(outside_any_pass_training_counts_as_unset) {
    golden::Replays replays{"golden_events"};
    for (const auto& [path, document] : documents("gating"))
        for (const Json& one : document.value("by_hand_cases", Json::array()))
            replays(path, one.dump().substr(0, 80), [&] {
                golden::check_keys(one, {"run_train", "run_valid", "training", "seen"});
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
                BOOST_TEST(seen.events_seen == words(one.at("seen").get<std::string>()),
                           boost::test_tools::per_element());
            });
}

BOOST_AUTO_TEST_CASE(an_unknown_event_is_missing_in_the_originals_words) {
    golden::Replays replays{"golden_events"};
    for (const auto& [path, document] : documents("gating"))
        if (document.contains("unknown_event_call"))
            replays(path, "unknown event", [&] {
                const auto text = document.at("unknown_event_call").at("str").get<std::string>();
                const std::string unknown = text.substr(text.rfind(' ') + 1);
                BOOST_CHECK_EXCEPTION(static_cast<void>(event_named(unknown)), std::invalid_argument,
                                      [&](const std::invalid_argument& error) { return error.what() == text; });
            });
}

BOOST_AUTO_TEST_CASE(the_training_loop_is_shown_as_the_original_shows_it) {
    golden::Replays replays{"golden_events"};
    const auto is_shown = [](const std::string& name) {
        return name.starts_with("show_training_loop_") && name.ends_with(".txt");
    };
    for (const golden::Path& path : golden::files("g3_events", is_shown))
        replays(path, [&] {
            const std::string text = golden::read_text(path);
            const golden::Path input = golden::beside(path, ".input.json");
            const Json json = std::filesystem::exists(input) ? golden::read_json(input) : Json::object();
            golden::check_keys(json, {"base", "profile", "callbacks_in_add_order"});
            const auto orders = orders_in(json.value("base", ""));
            struct Added {
                std::string name;
                double order;
                EventSet events;
            };
            std::vector<Added> all;
            auto found = callbacks_in(text);
            for (const Json& one : json.value("callbacks_in_add_order", Json::array())) {
                all.push_back({one.at(0), golden::number(one.at(1)), events_in(one.at(2))});
                found.erase(all.back().name);
            }
            for (const auto& [callback, events] : found) {
                const auto order = orders.find(callback);
                if (order == orders.end())
                    throw std::runtime_error("no recorded order of " + callback);
                all.push_back({callback, order->second, events});
            }
            std::set<double> ranks;   // recorded orders may be fractional; ours are integers
            for (const Added& one : all)
                ranks.insert(one.order);
            CallbackList callbacks;
            std::deque<Named> kept;
            for (const Added& one : all)
                callbacks.add(kept.emplace_back(
                    one.name, static_cast<int>(std::distance(ranks.begin(), ranks.find(one.order))), one.events));
            BOOST_TEST(show_training_loop(callbacks) == text);
        });
}

BOOST_AUTO_TEST_SUITE_END()
