#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/schedule.hpp>
#include "golden/replays.hpp"
#include "golden/torch_texts.hpp"

using namespace drawpoint;

namespace {

using Calls = std::vector<std::string>;

std::vector<golden::Document> documents(const char* kind) { return golden::documents("g5_torch_schedule", kind); }

ScheduleOptions options_of(const golden::Json& input) {
    golden::check_keys(input, {"wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait"});
    const auto value = [&](const char* key) { return input.at(key).get<std::int64_t>(); };
    return {.wait = value("wait"),
            .warmup = value("warmup"),
            .active = value("active"),
            .repeat = value("repeat"),
            .skip_first = value("skip_first"),
            .skip_first_wait = value("skip_first_wait")};
}

ProfilerAction action_of(char letter) {
    switch (letter) {
    case 'N': return ProfilerAction::none;
    case 'W': return ProfilerAction::warmup;
    case 'R': return ProfilerAction::record;
    case 'S': return ProfilerAction::record_and_save;
    case 'D': return ProfilerAction::device_stopped;
    default: throw std::runtime_error{"no such letter"};
    }
}

Schedule letters(const std::string& text) {
    return [text](std::int64_t step) {
        return action_of(text[std::min(static_cast<std::size_t>(step), text.size() - 1)]);
    };
}

/// Records the calls as the recordings do: the warnings follow the calls of their step.
struct Notes {
    Calls calls, warnings;
    ScheduledProfiler* profiler = nullptr;
    bool handler = true;

    ProfilerCalls functions() {
        return {
            .prepare = [this] { calls.emplace_back("prepare_trace"); },
            .start = [this] { calls.emplace_back("start_trace"); },
            .stop = [this] { calls.emplace_back("stop_trace"); },
            .trace_ready = handler ? std::function<void()>{[this] {
                calls.push_back("on_trace_ready step_num=" + std::to_string(profiler->step_num()));
            }}
                                   : nullptr,
            .begin_step = [this](std::int64_t step) { calls.push_back("open ProfilerStep#" + std::to_string(step)); },
            .end_step = [this](std::int64_t step) { calls.push_back("close ProfilerStep#" + std::to_string(step)); },
            .warn = [this](std::string_view text) { warnings.push_back("warn: " + std::string{text}); }};
    }
    Calls taken() {
        Calls all = std::move(calls);
        all.insert(all.end(), warnings.begin(), warnings.end());
        calls.clear();
        warnings.clear();
        return all;
    }
};

/// The calls that ours makes where the original leaves a trace unprepared.
Calls corrected(Calls recorded) {
    const auto contains = [&](std::string_view text) { return std::ranges::find(recorded, text) != recorded.end(); };
    if (contains("warn: Incorrect schedule: RECORD followed by WARMUP"))
        recorded.insert(std::ranges::find(recorded, "stop_trace") + 1, "prepare_trace");
    return recorded;
}

Schedule schedule_of(const golden::Json& input) {
    return input.contains("sched")     ? schedule(options_of(input.at("sched")))
           : input.contains("letters") ? letters(input.at("letters").get<std::string>())
                                       : Schedule{};
}

/// Checks that `call` throws `what`, the first of `expected`, and that the calls made are the others.
template <class Call>
void check_raised(const Calls& expected, Notes& notes, Call call) {
    BOOST_CHECK_EXCEPTION(call(), std::invalid_argument,
                          [&](const std::exception& error) { return error.what() == expected.at(0); });
    BOOST_TEST(notes.taken() == Calls(expected.begin() + 1, expected.end()), boost::test_tools::per_element());
}

void replay(const golden::Json& one) {
    const golden::Json& input = one.at("input");
    golden::check_keys(input, {"sched", "letters", "steps", "how", "handler"});
    Notes notes;
    notes.handler = input.value("handler", true);
    std::optional<ScheduledProfiler> profiler;
    for (const golden::Json& call : one.at("calls")) {
        const auto what = call.at(0).get<std::string>();
        const auto expected = corrected(call.at(2).get<Calls>());
        BOOST_TEST_CONTEXT(what) {
            if (what == "raised" && !profiler) {   // raised by the constructor
                check_raised(expected, notes, [&] { (void)ScheduledProfiler{notes.functions(), schedule_of(input)}; });
                continue;
            }
            if (what == "raised") {
                check_raised(expected, notes, [&] { profiler->step(); });
                continue;
            }
            if (what == "construct")
                notes.profiler = &profiler.emplace(notes.functions(), schedule_of(input));
            else if (what == "enter" || what == "start")
                profiler.value().start();
            else if (what == "exit" || what == "stop")
                profiler.value().stop();
            else if (what == "step" || what.starts_with("step -> "))
                profiler.value().step();
            else if (what == "stop again") {   // the original stops and saves a second time; ours does nothing
                profiler.value().stop();
                BOOST_TEST(notes.taken().empty());
                continue;
            } else
                throw std::runtime_error("unknown call " + what);
            BOOST_TEST(notes.taken() == expected, boost::test_tools::per_element());
            BOOST_TEST(name_of(profiler->current_action()) == call.at(1).get<std::string>());
        }
    }
}

/// Whether the case is about something that does not compile in C++.
bool does_not_compile(const std::string& id) {
    return id == "schedule missing active" || id == "schedule returns an int";
}

void check_text(const std::string& id, const golden::Json& one) {
    const auto says = [&](const std::exception& error) { return error.what() == one.at("message").get<std::string>(); };
    if (id.starts_with("schedule({")) {
        std::string text = id.substr(9, id.size() - 10);
        std::ranges::replace(text, '\'', '"');
        BOOST_CHECK_EXCEPTION((void)schedule(options_of(golden::Json::parse(text))), std::invalid_argument, says);
    } else if (id.starts_with("schedule step ")) {
        BOOST_CHECK_EXCEPTION(schedule({})(std::stoll(id.substr(14))), std::invalid_argument, says);
    } else if (id.starts_with("schedule warmup=")) {
        Calls warnings;
        for (const std::string& text : schedule_warnings({.warmup = std::stoll(id.substr(16))}))
            warnings.push_back("UserWarning: " + text);
        BOOST_TEST(warnings == one.value("warnings", Calls{}), boost::test_tools::per_element());
    } else if (id == "stop before start") {
        BOOST_CHECK_EXCEPTION(ScheduledProfiler{{}}.stop(), std::logic_error, says);
    } else if (id == "step before start, no schedule") {   // the original goes on; ours refuses
        BOOST_CHECK_THROW(ScheduledProfiler{{}}.step(), std::logic_error);
    } else if (id == "schedule returns DEVICE_STOPPED") {
        BOOST_CHECK_EXCEPTION((ScheduledProfiler{{}, letters("D")}), std::invalid_argument, says);
    } else {
        throw std::runtime_error("unknown text");
    }
}

/// Checks the calls that ours makes for one row of the table.
void check_transition(const golden::Json& row) {
    const auto from = row.at(0).get<std::string>();
    const std::string to = row.at(1).is_null() ? "" : row.at(1).get<std::string>();
    auto expected = row.at(2).get<Calls>();
    std::erase_if(expected, [](const std::string& call) { return call.starts_with("warn: "); });
    if (from == "RECORD" && to == "WARMUP")
        expected.emplace_back("prepare_trace");
    const auto action = [](const std::string& name) {
        for (int i = 0; i < 5; ++i)
            if (name == name_of(static_cast<ProfilerAction>(i)))
                return static_cast<ProfilerAction>(i);
        throw std::runtime_error{"no such action"};
    };

    // DEVICE_STOPPED follows a recording whose cycle goes on, and ends where the next cycle begins.
    std::vector<ProfilerAction> plan{action(from == "DEVICE_STOPPED" ? "RECORD" : from)};
    if (from == "DEVICE_STOPPED") {
        plan.push_back(to.empty() || to == "DEVICE_STOPPED" ? ProfilerAction::record : ProfilerAction::record_and_save);
        plan.push_back(to.empty() || to == "DEVICE_STOPPED" ? ProfilerAction::record : action(to));
    } else if (!to.empty()) {
        plan.push_back(action(to == "DEVICE_STOPPED" ? "RECORD" : to));
    }
    Notes notes;
    ScheduledProfiler profiler{notes.functions(),
                               [&](std::int64_t step) { return plan.at(static_cast<std::size_t>(step)); }};
    notes.profiler = &profiler;
    profiler.start();
    if (from == "DEVICE_STOPPED") {
        profiler.collection_stopped();
        profiler.step();
        BOOST_TEST_REQUIRE(name_of(profiler.current_action()) == from);
    }
    if (to == "DEVICE_STOPPED" && from != to)
        profiler.collection_stopped();
    notes.calls.clear();
    if (to.empty())
        profiler.stop();
    else
        profiler.step();
    Calls made;
    for (const std::string& call : notes.calls)
        if (!call.starts_with("open") && !call.starts_with("close"))
            made.push_back(call.starts_with("on_trace_ready") ? "_trace_ready" : call);
    BOOST_TEST_CONTEXT(from << " -> " << to) {
        // The original cannot reach this state; neither can ours.
        if (!expected.empty() && expected.front().starts_with("raise: "))
            BOOST_TEST((profiler.current_action() != ProfilerAction::device_stopped));
        else
            BOOST_TEST(made == expected, boost::test_tools::per_element());
    }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_schedule)

BOOST_AUTO_TEST_CASE(every_recorded_schedule_gives_the_original_actions_and_a_negative_number_is_refused) {
    golden::Replays replays{"golden_schedule"};
    for (const auto& [path, document] : documents("schedules"))
        for (const golden::Json& row : document.at("rows"))
            replays(path, row.dump(), [&] {
                const auto value = [&](std::size_t i) { return row.at(i).get<std::int64_t>(); };
                const ScheduleOptions options{value(0), value(1), value(2), value(3), value(4), value(5)};
                if (options.skip_first_wait < 0) {
                    BOOST_CHECK_THROW((void)schedule(options), std::invalid_argument);
                    return;
                }
                const Schedule plan = schedule(options);
                const auto recorded = row.at(6).get<std::string>();
                std::string actions;
                for (std::size_t step = 0; step < recorded.size(); ++step)
                    actions += static_cast<char>('0' + static_cast<int>(plan(static_cast<std::int64_t>(step))));
                BOOST_TEST(actions == recorded);
            });
}

BOOST_AUTO_TEST_CASE(every_recorded_run_makes_the_original_calls_but_always_prepares_and_refuses_a_step_before_start) {
    golden::Replays replays{"golden_schedule"};
    for (const auto& [path, document] : documents("calls"))
        for (const golden::Json& one : document.at("cases"))
            replays(path, one.at("id"), [&] {
                const auto& calls = one.at("calls");
                const bool steps_first = calls.size() > 1 && calls.at(1).at(0).get<std::string>().starts_with("step");
                if (!steps_first) {
                    replay(one);
                    return;
                }
                ScheduledProfiler profiler{{}, schedule_of(one.at("input"))};
                BOOST_CHECK_THROW(profiler.step(), std::logic_error);
                BOOST_TEST(profiler.step_num() == 0);
            });
}

BOOST_AUTO_TEST_CASE(every_transition_makes_the_calls_of_the_original_table) {
    golden::Replays replays{"golden_schedule"};
    for (const auto& [path, document] : documents("transitions"))
        for (const golden::Json& row : document.at("rows"))
            replays(path, row.dump(), [&] { check_transition(row); });
}

BOOST_AUTO_TEST_CASE(the_original_texts_name_what_is_wrong) {
    golden::Replays replays{"golden_schedule"};
    for (const auto& [path, document] : documents("texts"))
        for (const golden::Json& one : document.at("cases")) {
            const auto id = one.value("id", "");
            if (golden::is_of_torch_profiler(id))
                replays.by_rule(path, id, "needs LibTorch, golden_texts replays it");
            else if (does_not_compile(id))
                replays.by_rule(path, id, "does not compile");
            else
                replays(path, id, [&] { check_text(id, one); });
        }
}

BOOST_AUTO_TEST_SUITE_END()
