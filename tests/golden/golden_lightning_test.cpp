// Recorded scripts of Lightning's profilers, replayed on a clock that moves as in the recording.

#include <drawpoint/instrumentation/report/lightning.hpp>
#include <drawpoint/loop/profilers/profiler.hpp>
#include <drawpoint/loop/profilers/simple.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>

#include <boost/test/unit_test.hpp>

#include "golden/replays.hpp"
#include "loop/profilers/action_count_profiler.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace drawpoint;
using golden::Json;

constexpr auto every = [](const Json&) { return true; };
constexpr auto no_rule = [](const Json&) { return std::string{}; };

/// Replays each case of a kind that satisfies `is_meant`, except those for which `rule` gives another answer.
template <class Predicate, class Function, class Rule = decltype(no_rule)>
void replay_cases(const char* kind, Predicate is_meant, Function check, Rule rule = no_rule) {
    golden::Replays replays{"golden_lightning"};
    for (const auto& [path, document] : golden::documents("g4_lightning", kind))
        for (const Json& one : document.at("cases")) {
            const std::string name =
                one.contains("input") ? one.at("input").value("id", "") : one.dump().substr(0, 100);
            if (!is_meant(one))
                continue;
            if (const std::string reason = rule(one); !reason.empty())
                replays.by_rule(path, name, reason);
            else
                replays(path, name, [&] { check(path, one); });
        }
}

std::string text_or_nothing(const Json& value) { return value.is_null() ? "" : value.get<std::string>(); }

/// Plays a script. Scopes that are open at its end stay open, as in the original. Returns the texts of the errors.
std::vector<std::string> play(const Json& script, ManualClock& clock, SimpleProfiler& profiler) {
    std::vector<std::string> errors;
    std::vector<std::unique_ptr<ProfiledAction>> scopes;
    for (const Json& op : script) {
        const std::string what = op.at(0);
        try {
            if (what == "advance")
                clock.advance(std::chrono::nanoseconds{op.at(1).get<std::int64_t>()});
            else if (what == "start")
                profiler.start(op.at(1).get<std::string>());
            else if (what == "stop")
                profiler.stop(op.at(1).get<std::string>());
            else if (what == "begin")
                scopes.push_back(std::make_unique<ProfiledAction>(profiler, op.at(1).get<std::string>()));
            else if (what == "end" || what == "end_with_exception")
                scopes.pop_back();   // a scope ends in the same way in both cases
            else
                throw std::runtime_error("unknown operation " + what);
        } catch (const std::invalid_argument& error) {
            errors.emplace_back(error.what());
        }
    }
    return errors;
}

/// The report of a script that "records" durations directly and thus has no clock.
LightningProfile recorded(const Json& input) {
    golden::check_keys(input, {"id", "extended", "script", "stage", "rank", "start_time"});
    LightningProfile profile{.stage = text_or_nothing(input.value("stage", Json{})),
                             .total_s = -golden::number(input.at("start_time")),
                             .actions = {}};
    for (const Json& op : input.at("script")) {
        if (op.at(0) != "record")
            throw std::runtime_error("operation " + op.at(0).dump() + " in a script of recorded durations");
        ExactSum sum;
        for (const Json& value : op.at(2))
            sum.add(golden::number(value));
        profile.actions.push_back({op.at(1), op.at(2).size(), sum.value()});
    }
    return profile;
}

/// Whether a scope enters an open action again. The original raises and stops that action; ours raises, and the outer
/// scope goes on.
bool enters_again(const Json& one) {
    return std::ranges::any_of(one.at("output").at("errors"),
                               [](const Json& error) { return error.at(0).at(0) == "begin"; });
}

/// Checks the summary that was returned, and the text file of the case if there is one.
void check_summary(const std::string& ours, const golden::Path& path, const Json& one) {
    const Json& summary = one.at("output").at("summary");
    if (!summary.contains("returned")) {   // a defect of the original: a short report without any action
        BOOST_TEST(ours == "Profiler Report\n\n");
        return;
    }
    BOOST_TEST(ours == summary.at("returned").get<std::string>());
    const auto id = one.at("input").at("id").get<std::string>();
    if (const auto text = golden::companion(path.parent_path() / ("simple_" + id + ".txt")))
        BOOST_TEST(ours == *text);
}

/// Durations of the actions in a script of scopes, one of which is entered again while it is open.
std::map<std::string, std::vector<double>> durations_with_an_outer_scope_that_goes_on(const Json& script) {
    std::map<std::string, std::vector<double>> durations;
    std::vector<std::pair<std::string, std::int64_t>> open;
    std::int64_t now_ns = 0;
    for (const Json& op : script) {
        if (op.at(0) == "advance") {
            now_ns += op.at(1).get<std::int64_t>();
        } else if (op.at(0) == "begin") {
            const std::string action = op.at(1);
            if (std::ranges::find(open, action, &std::pair<std::string, std::int64_t>::first) == open.end())
                open.emplace_back(action, now_ns);
        } else if (op.at(0) == "end" || op.at(0) == "end_with_exception") {
            durations[open.back().first].push_back(static_cast<double>(now_ns - open.back().second) / 1e9);
            open.pop_back();
        } else {
            throw std::runtime_error("operation " + op.at(0).dump() + " in a script that enters a scope again");
        }
    }
    return durations;
}

/// Whether a script contains durations instead of having them measured.
bool is_given(const Json& one) { return one.at("input").contains("start_time"); }

void check_script(const golden::Path& path, const Json& one) {
    const Json &input = one.at("input"), &output = one.at("output");
    golden::check_keys(input, {"id", "extended", "script", "stage", "rank"});
    const LightningOptions options{.extended = input.at("extended").get<bool>()};
    ManualClock clock;
    SimpleProfiler profiler{{}, options, AnyClock{clock}};
    if (const Json stage = input.value("stage", Json{}); !stage.is_null())
        profiler.setup(stage.get<std::string>());
    const auto errors = play(input.at("script"), clock, profiler);
    std::vector<std::string> theirs;
    for (const Json& error : output.at("errors"))
        if (error.at(1).contains("message") && (!enters_again(one) || error.at(0).at(0) == "begin"))
            theirs.push_back(error.at(1).at("message"));
    BOOST_TEST(errors == theirs, boost::test_tools::per_element());
    if (enters_again(one)) {
        for (const auto& [action, durations] : durations_with_an_outer_scope_that_goes_on(input.at("script")))
            BOOST_TEST(profiler.durations(action) == durations, boost::test_tools::per_element());
        return;
    }
    check_summary(profiler.summary(), path, one);
    for (const auto& [action, durations] : output.at("recorded_durations").items()) {
        const auto ours = profiler.durations(action);
        BOOST_REQUIRE_EQUAL(ours.size(), durations.size());
        for (std::size_t i = 0; i < ours.size(); ++i)
            BOOST_TEST(ours[i] == golden::number(durations[i]));
    }
}

void check_report(const Json& one) {
    golden::check_keys(one, {"id", "dirpath", "filename", "log_dir_at_setup", "stage", "local_rank", "describe_calls",
                             "actions", "files", "logged", "errors", "dirpath_after", "output_file_open_after",
                             "recorded_after"});
    if (!one.value("errors", Json::array()).empty())
        throw std::runtime_error("errors are not replayed");
    const test::TemporaryFolder folder;
    const auto below = [&](const char* key) {
        return one.value(key, Json{}).is_null() ? golden::Path{} : folder.path() / one.at(key).get<std::string>();
    };
    ManualClock clock;
    const ProfilerFiles files{below("dirpath"), text_or_nothing(one.at("filename"))};
    std::unique_ptr<Profiler> profiler;
    const bool pass_through = one.at("describe_calls") > 0 && one.at("recorded_after").empty();
    if (pass_through)
        profiler = std::make_unique<PassThroughProfiler>(files);
    else
        profiler = std::make_unique<SimpleProfiler>(files, LightningOptions{}, AnyClock{clock});
    std::ostringstream out;
    profiler->set_output(out);
    if (!one.at("stage").is_null())
        profiler->setup(one.at("stage").get<std::string>(),
                        one.at("local_rank").is_null() ? 0 : one.at("local_rank").get<int>(),
                        below("log_dir_at_setup"));
    for (int call = 1; call <= one.at("describe_calls").get<int>(); ++call) {
        profiler->start("a");
        clock.advance(std::chrono::nanoseconds{1000 * call});
        profiler->stop("a");
        profiler->describe();
    }
    std::string logged;
    for (const Json& text : one.at("logged"))
        logged += text.get<std::string>();
    BOOST_TEST(out.str() == logged);
    for (const auto& [name, text] : one.at("files").items()) {
        if (pass_through)   // the original leaves an empty file
            BOOST_TEST(!std::filesystem::exists(folder.path() / name));
        else
            BOOST_TEST(golden::read_text(folder.path() / name) == text.get<std::string>());
    }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_lightning)

BOOST_AUTO_TEST_CASE(a_replayed_script_gives_the_originals_summary_errors_and_durations_byte_for_byte) {
    const auto is_played = [](const Json& one) { return !is_given(one); };
    replay_cases("scripts", is_played, check_script);
}

BOOST_AUTO_TEST_CASE(given_durations_print_as_the_original_prints_them) {
    replay_cases("scripts", is_given, [](const golden::Path& path, const Json& one) {
        check_summary(to_lightning(recorded(one.at("input")), {.extended = one.at("input").at("extended").get<bool>()}),
                      path, one);
    });
}

BOOST_AUTO_TEST_CASE(entering_an_action_twice_raises_and_the_outer_one_goes_on) {   // the original stops the outer one
    ManualClock clock;
    SimpleProfiler profiler{{}, {}, AnyClock{clock}};
    const Json script = Json::parse(R"([["begin","outer"],["advance",100],["begin","outer"],["advance",50],["end"]])");
    const auto errors = play(script, clock, profiler);
    BOOST_REQUIRE_EQUAL(errors.size(), 1u);
    BOOST_TEST(errors[0] == "Attempted to start outer which has already started.");
    BOOST_REQUIRE_EQUAL(profiler.durations("outer").size(), 1u);
    BOOST_TEST(profiler.durations("outer")[0] == 150e-9);
}

BOOST_AUTO_TEST_CASE(a_file_is_named_as_the_original_names_it) {
    replay_cases("names", every, [](const golden::Path&, const Json& one) {
        golden::check_keys(
            one, {"dirpath", "filename", "stage", "local_rank", "action", "extension", "name", "goes_to_file"});
        const auto rank =
            one.at("local_rank").is_null() ? std::nullopt : std::optional{one.at("local_rank").get<int>()};
        BOOST_TEST(profile_file_name(text_or_nothing(one.at("stage")), text_or_nothing(one.at("filename")), rank,
                                     text_or_nothing(one.at("action")),
                                     one.at("extension").get<std::string>()) == one.at("name").get<std::string>());
    });
}

BOOST_AUTO_TEST_CASE(a_report_goes_where_the_originals_goes_and_says_the_same) {
    replay_cases("reports", every, [](const golden::Path&, const Json& one) { check_report(one); });
}

BOOST_AUTO_TEST_CASE(a_profiler_of_ones_own_counts_as_the_documents_example_does) {
    const auto is_broken = [](const Json& one) {
        return std::string{one.at("format_strings").get<std::string>().ends_with("(broken)") ? "the document's fault"
                                                                                             : ""};
    };
    const auto check = [](const golden::Path&, const Json& one) {
        golden::check_keys(one, {"id", "format_strings", "calls", "first_occurrence_stamps", "summary"});
        const auto formats = one.at("format_strings").get<std::string>();
        if (formats != "as intended")
            throw std::runtime_error("format strings " + formats);
        std::vector<std::string> stamps;
        for (const Json& stamp : one.at("first_occurrence_stamps"))
            stamps.push_back(stamp);
        test::ActionCountProfiler profiler{stamps};
        for (const Json& action : one.at("calls"))
            const ProfiledAction timed = profiler.profile(action.get<std::string>());
        const Json& summary = one.at("summary");
        BOOST_TEST(profiler.summary() == (summary.contains("returned") ? summary.at("returned").get<std::string>()
                                                                       : "\nProfile Summary: \n"));
    };
    replay_cases("counts", every, check, is_broken);
}

BOOST_AUTO_TEST_SUITE_END()
