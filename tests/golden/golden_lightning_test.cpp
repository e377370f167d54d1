// Recorded scripts of Lightning's profilers, replayed on a clock that moves as theirs did.

#include <drawpoint/instrumentation/report/lightning.hpp>
#include <drawpoint/loop/profilers/profiler.hpp>
#include <drawpoint/loop/profilers/simple.hpp>

#include <chrono>
#include <sstream>

#include <boost/test/unit_test.hpp>

#include "golden/golden_files.hpp"
#include "loop/profilers/action_count_profiler.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace drawpoint;
using golden::Json;

std::vector<Json> cases_of(const char* file) {
    std::vector<Json> all;
    for (const golden::Path& folder : golden::folders()) {
        const Json whole = golden::read_json(folder / "g4_lightning" / file);
        for (const Json& one : whole.at("cases"))
            all.push_back(one);
    }
    if (all.empty())
        throw std::runtime_error(std::string{"no case in "} + file);
    return all;
}

std::string text_or_nothing(const Json& value) { return value.is_null() ? "" : value.get<std::string>(); }

/// Plays a script; scopes still open at its end stay so, as in the original. Returns the errors' texts.
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
                scopes.pop_back();   // a scope ends alike either way
            else
                throw std::runtime_error("unknown operation " + what);
        } catch (const std::invalid_argument& error) {
            errors.emplace_back(error.what());
        }
    }
    return errors;
}

/// What a script "records" directly, printed: such a script has no clock.
LightningProfile recorded(const Json& input) {
    LightningProfile profile{.stage = text_or_nothing(input.value("stage", Json{})),
                             .total_s = -input.at("start_time").get<double>(),
                             .actions = {}};
    for (const Json& op : input.at("script")) {
        ExactSum sum;
        for (const Json& value : op.at(2))
            sum.add(value.get<double>());
        profile.actions.push_back({op.at(1), op.at(2).size(), sum.value()});
    }
    return profile;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_lightning)

BOOST_AUTO_TEST_CASE(a_replayed_script_gives_the_originals_summary_errors_and_durations_byte_for_byte) {
    for (const Json& one : cases_of("simple_profiler.json")) {
        const Json& input = one.at("input");
        const std::string id = input.at("id");
        if (input.contains("start_time") || id.find("reentered") != id.npos)
            continue;
        BOOST_TEST_CONTEXT(id) {
            ManualClock clock;
            SimpleProfiler profiler{{}, {.extended = input.at("extended").get<bool>()}, AnyClock{clock}};
            if (input.contains("stage") && !input.at("stage").is_null())
                profiler.setup(input.at("stage").get<std::string>());
            const auto errors = play(input.at("script"), clock, profiler);
            const Json& output = one.at("output");
            if (output.at("summary").contains("returned"))
                BOOST_TEST(profiler.summary() == output.at("summary").at("returned").get<std::string>());
            else   // a defect of the original: a short report on nothing
                BOOST_TEST(profiler.summary() == "Profiler Report\n\n");
            std::vector<std::string> theirs;
            for (const Json& error : output.at("errors"))
                if (error.at(1).contains("message"))
                    theirs.push_back(error.at(1).at("message"));
            BOOST_TEST(errors == theirs, boost::test_tools::per_element());
            for (const auto& [action, durations] : output.at("recorded_durations").items()) {
                const auto ours = profiler.durations(action);
                BOOST_REQUIRE_EQUAL(ours.size(), durations.size());
                for (std::size_t i = 0; i < ours.size(); ++i)
                    BOOST_TEST(ours[i] == durations[i].get<double>());
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(given_durations_print_as_the_original_prints_them) {
    std::size_t seen = 0;
    for (const Json& one : cases_of("simple_profiler.json")) {
        const Json& input = one.at("input");
        if (!input.contains("start_time"))
            continue;
        BOOST_TEST_CONTEXT(input.at("id")) {
            ++seen;
            BOOST_TEST(to_lightning(recorded(input), {.extended = input.at("extended").get<bool>()}) ==
                       one.at("output").at("summary").at("returned").get<std::string>());
        }
    }
    BOOST_TEST(seen >= 4u);
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
    for (const Json& one : cases_of("file_names.json"))
        BOOST_TEST_CONTEXT(one.dump()) {
            const auto rank =
                one.at("local_rank").is_null() ? std::nullopt : std::optional{one.at("local_rank").get<int>()};
            BOOST_TEST(profile_file_name(text_or_nothing(one.at("stage")), text_or_nothing(one.at("filename")), rank,
                                         text_or_nothing(one.at("action")),
                                         one.at("extension").get<std::string>()) == one.at("name").get<std::string>());
        }
}

BOOST_AUTO_TEST_CASE(a_report_goes_where_the_originals_goes_and_says_the_same) {
    for (const Json& one : cases_of("describe.json"))
        BOOST_TEST_CONTEXT(one.at("id")) {
            const test::TemporaryFolder folder;
            const auto below = [&](const char* key) {
                return one.at(key).is_null() ? golden::Path{} : folder.path() / one.at(key).get<std::string>();
            };
            ManualClock clock;
            const ProfilerFiles files{below("dirpath"), text_or_nothing(one.at("filename"))};
            std::unique_ptr<Profiler> profiler;
            const bool pass_through = one.at("id") == "passthrough";
            if (pass_through)
                profiler = std::make_unique<PassThroughProfiler>(files);
            else
                profiler = std::make_unique<SimpleProfiler>(files, LightningOptions{}, AnyClock{clock});
            std::ostringstream out;
            profiler->set_output(out);
            profiler->setup(one.at("stage").get<std::string>(), one.at("local_rank").get<int>(),
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
}

BOOST_AUTO_TEST_CASE(a_profiler_of_ones_own_counts_as_the_documents_example_does) {
    for (const Json& one : cases_of("action_count_profiler.json")) {
        if (one.at("format_strings") != "as intended")
            continue;
        BOOST_TEST_CONTEXT(one.at("id")) {
            std::vector<std::string> stamps;
            for (const Json& stamp : one.at("first_occurrence_stamps"))
                stamps.push_back(stamp);
            test::ActionCountProfiler profiler{stamps};
            for (const Json& action : one.at("calls"))
                const ProfiledAction timed = profiler.profile(action.get<std::string>());
            const Json& summary = one.at("summary");
            BOOST_TEST(profiler.summary() == (summary.contains("returned") ? summary.at("returned").get<std::string>()
                                                                           : "\nProfile Summary: \n"));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
