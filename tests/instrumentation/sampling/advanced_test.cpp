#include <boost/test/unit_test.hpp>

#include <limits>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/report/advanced.hpp>
#include <drawpoint/instrumentation/facts.hpp>

#include "golden/replays.hpp"

namespace {

using namespace drawpoint;

std::uint32_t name(Ledger& ledger, const std::string& text) {
    ledger.names.push_back(text);
    return static_cast<std::uint32_t>(ledger.names.size() - 1);
}

std::uint32_t frame(Ledger& ledger, const std::string& function, const std::string& file, std::uint32_t line) {
    const std::uint32_t named = name(ledger, function);
    ledger.frames.push_back({named, file.empty() ? nothing : name(ledger, file), line});
    return static_cast<std::uint32_t>(ledger.frames.size() - 1);
}

std::uint32_t stack(Ledger& ledger, std::uint32_t parent, std::uint32_t frame) {
    ledger.stacks.push_back({parent, frame});
    return static_cast<std::uint32_t>(ledger.stacks.size() - 1);
}

void add_region(Ledger& ledger, const std::string& action, std::int64_t begin_ns, std::int64_t ns) {
    ledger.operators.push_back(
        {.kind = OperatorKind::user_annotation, .name = name(ledger, action), .begin_ns = begin_ns, .ns = ns});
}

struct GoldenAction {
    std::string action;
    std::vector<std::pair<int, std::string>> functions;   // number of calls, place
    std::size_t all = 0;   // number of functions before a restriction omitted some; 0: none are omitted
};

/// The actions of a masked report of the original.
std::vector<GoldenAction> actions_of(const std::string& text) {
    static const std::regex head{"Profile stats for: ([^ ]+).*"}, row{" +(\\d+) +F\\.FFF .*F\\.FFF (.*)"},
        reduced{" +List reduced from (\\d+) to .*"};
    std::vector<GoldenAction> actions;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
        std::smatch found;
        if (std::regex_match(line, found, head))
            actions.push_back({.action = found[1], .functions = {}});
        else if (std::regex_match(line, found, reduced))
            actions.back().all = std::stoul(found[1]);
        else if (std::regex_match(line, found, row))
            actions.back().functions.emplace_back(std::stoi(found[1]), found[2]);
    }
    return actions;
}

/// A recording with one sample per call that the original counted in each function, and with times in the same order.
Ledger recording_of(const std::vector<GoldenAction>& actions) {
    static const std::regex in_file{"(.+):(\\d+)\\((.+)\\)"}, built_in{"\\{(.*)\\}"};
    Ledger ledger;
    ledger.threads = {{.tid = 1}};
    std::int64_t now_ns = 0;
    for (const GoldenAction& action : actions) {
        const std::int64_t begin_ns = now_ns;
        auto rank = static_cast<std::int64_t>(action.functions.size());
        for (const auto& [calls, place] : action.functions) {
            std::smatch found;
            const std::uint32_t at = std::regex_match(place, found, in_file)
                                         ? frame(ledger, found[3], "/some/folder/" + found[1].str(),
                                                 static_cast<std::uint32_t>(std::stoul(found[2])))
                                         : (std::regex_match(place, found, built_in), frame(ledger, found[1], "", 0));
            const std::uint32_t where = stack(ledger, nothing, at);
            for (int call = 0; call < calls; ++call)
                ledger.stack_samples.push_back({now_ns++, 0, where, rank * 1'000'000 / calls});
            --rank;
        }
        add_region(ledger, action.action, begin_ns, now_ns - begin_ns);
    }
    return ledger;
}

std::string masked(const std::string& report) {
    const std::string samples = std::regex_replace(report, std::regex{"(\\d) samples in"}, "$1 function calls in");
    return std::regex_replace(samples, std::regex{"\\d+\\.\\d{3}"}, "F.FFF");
}

std::vector<golden::Path> masked_reports() {
    return golden::files("g4_lightning", [](const std::string& name) {
        return name.starts_with("advanced_") && name.ends_with(".masked.txt");
    });
}

/// The actions of a masked report, with functions that a restriction omitted taken from another report.
std::vector<GoldenAction> whole_actions_of(const std::string& text) {
    auto actions = actions_of(text);
    for (GoldenAction& action : actions) {
        for (const golden::Path& path : masked_reports())
            for (const GoldenAction& other : actions_of(golden::read_text(path)))
                if (action.all != 0 && other.all == 0 && other.action == action.action &&
                    other.functions.size() == action.all)
                    action = other;
        if (action.all != 0)
            throw std::runtime_error("no report has all functions of " + action.action);
    }
    return actions;
}

/// The arguments with which the original was called.
struct Asked {
    LineRestriction restriction = 1.0;
    std::string stage;
    std::optional<int> rank;
};

/// Derives them from a report.
Asked asked_of(const std::string& text) {
    static const std::regex titled{"^([A-Z]+) Profiler Report"}, ranked{" rank: (\\d+)"},
        restricted{" due to restriction <([\\d.]+)>"};
    Asked asked;
    std::smatch found;
    if (std::regex_search(text, found, titled))
        asked.stage = found[1];
    if (std::regex_search(text, found, ranked))
        asked.rank = std::stoi(found[1]);
    if (std::regex_search(text, found, restricted)) {
        const std::string number = found[1];
        if (number.find('.') == number.npos)
            asked.restriction = std::int64_t{std::stoll(number)};
        else
            asked.restriction = std::stod(number);
    }
    return asked;
}

/// Reads them from a recorded case.
Asked asked_of(const golden::Json& one) {
    golden::check_keys(one, {"id", "line_count_restriction", "stage", "local_rank", "masked_summary", "note"});
    Asked asked;
    if (!one.at("stage").is_null())
        asked.stage = one.at("stage");
    if (!one.at("local_rank").is_null())
        asked.rank = one.at("local_rank").get<int>();
    if (const golden::Json& restriction = one.at("line_count_restriction"); restriction.is_number_integer())
        asked.restriction = restriction.get<std::int64_t>();
    else
        asked.restriction = restriction.get<double>();
    return asked;
}

std::string reported_of(const std::string& text, const Asked& asked) {
    return masked(
        advanced_report(recording_of(whole_actions_of(text)),
                        {.line_count_restriction = asked.restriction, .stage = asked.stage, .rank = asked.rank}));
}

/// "main" calls "a" (which calls itself) and "b"; a region covers part of the time.
Ledger recursive_run() {
    Ledger ledger;
    ledger.threads = {{.tid = 1}};
    const std::uint32_t main = stack(ledger, nothing, frame(ledger, "main", "m.cpp", 1));
    const std::uint32_t a = frame(ledger, "a", "m.cpp", 2);
    const std::uint32_t once = stack(ledger, main, a), twice = stack(ledger, once, a);
    const std::uint32_t b = stack(ledger, main, frame(ledger, "b", "", 0));
    ledger.stack_samples = {
        {0, 0, twice, 10'000'000}, {1, 0, once, 10'000'000}, {2, 0, b, 10'000'000}, {3, 0, main, 10'000'000}};
    return ledger;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(advanced)

BOOST_AUTO_TEST_CASE(the_layout_equals_lightnings) {
    golden::Replays replays{"advanced"};
    for (const golden::Path& path : masked_reports())
        replays(path, [&] {
            const std::string text = golden::read_text(path);
            BOOST_TEST(reported_of(text, asked_of(text)) == text);
        });
    for (const auto& [path, document] : golden::documents_if_any("g4_lightning", "advanced"))
        for (const golden::Json& one : document.at("cases")) {
            const std::string id = one.value("id", "");
            if (!one.contains("masked_summary")) {
                replays.by_rule(path, id, "of a profiler that is started and stopped; ours samples");
                continue;
            }
            replays(path, id, [&] {
                const auto text = one.at("masked_summary").get<std::string>();
                BOOST_TEST(reported_of(text, asked_of(one)) == text);
            });
        }
}

BOOST_AUTO_TEST_CASE(nothing_sampled_leaves_the_title) {
    BOOST_TEST(advanced_report(Ledger{}) == "Profiler Report");
    BOOST_TEST(advanced_report(Ledger{}, {.stage = "validate"}) == "VALIDATE Profiler Report");
}

BOOST_AUTO_TEST_CASE(own_time_counts_for_the_innermost_and_cumulative_once_a_sample) {
    const auto profiles = advanced_profiles(recursive_run());
    BOOST_REQUIRE_EQUAL(profiles.size(), 1u);
    BOOST_TEST(profiles[0].action == "(no action)");
    BOOST_TEST(profiles[0].samples == 4u);
    BOOST_TEST(profiles[0].ns == 40'000'000);
    const auto& functions = profiles[0].functions;
    BOOST_REQUIRE_EQUAL(functions.size(), 3u);
    BOOST_TEST(functions[0].place == "m.cpp:1(main)");
    BOOST_TEST(functions[0].cumulative_ns == 40'000'000);
    BOOST_TEST(functions[0].total_ns == 10'000'000);
    BOOST_TEST(functions[1].place == "m.cpp:2(a)");
    BOOST_TEST(functions[1].calls == 3u);
    BOOST_TEST(functions[1].primitive_calls == 2u);
    BOOST_TEST(functions[1].cumulative_ns == 20'000'000);
    BOOST_TEST(functions[2].place == "{b}");
}

BOOST_AUTO_TEST_CASE(total_times_of_all_actions_sum_to_the_samples_weights) {
    Ledger ledger = recursive_run();
    add_region(ledger, "first", 0, 2);
    std::int64_t sum = 0;
    for (const ActionProfile& profile : advanced_profiles(ledger))
        for (const FunctionProfile& function : profile.functions)
            sum += function.total_ns;
    BOOST_TEST(sum == 40'000'000);
}

BOOST_AUTO_TEST_CASE(recursion_shows_as_calls_over_samples) {
    const std::string report = advanced_report(recursive_run());
    BOOST_TEST(report.find("\n      3/2    0.020    0.007    0.020    0.010 m.cpp:2(a)\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_share_keeps_that_share_of_the_lines_rounded) {
    const std::string half = advanced_report(recursive_run(), {.line_count_restriction = 0.5});
    BOOST_TEST(half.find("   List reduced from 3 to 2 due to restriction <0.5>\n") != std::string::npos);
    BOOST_TEST(half.find("{b}") == std::string::npos);
    BOOST_TEST(advanced_report(recursive_run(), {.line_count_restriction = 1.0}).find("List reduced") ==
               std::string::npos);
    BOOST_TEST(advanced_report(recursive_run(), {.line_count_restriction = std::int64_t{3}}).find("List reduced") ==
               std::string::npos);
    BOOST_TEST(advanced_report(recursive_run(), {.line_count_restriction = std::int64_t{0}})
                   .find("from 3 to 0 due to restriction <0>") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_restriction_that_is_neither_count_nor_share_is_refused) {
    BOOST_CHECK_THROW(static_cast<void>(advanced_report(Ledger{}, {.line_count_restriction = 1.5})),
                      std::invalid_argument);
    BOOST_CHECK_THROW(static_cast<void>(advanced_report(Ledger{}, {.line_count_restriction = std::int64_t{-1}})),
                      std::invalid_argument);
    BOOST_CHECK_THROW(static_cast<void>(advanced_report(
                          Ledger{}, {.line_count_restriction = std::numeric_limits<double>::quiet_NaN()})),
                      std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(the_samplers_cost_and_rate_are_rows_of_their_own) {
    Ledger ledger = recursive_run();
    BOOST_TEST(advanced_report(ledger).find("own cost") == std::string::npos);
    ledger.set_fact(facts::sampling_backend, "perf_event");
    ledger.set_fact(facts::sampling_rate_hz, "997.1");
    ledger.set_fact(facts::sampling_share_of_cpu, "0.0031");
    const std::string report = advanced_report(ledger);
    BOOST_TEST(report.find("\nProfiler's own cost\n   back end             perf_event\n") != std::string::npos);
    BOOST_TEST(report.find("   rate obtained (Hz)   997.1\n") != std::string::npos);
    BOOST_TEST(report.find("   own share of CPU     0.0031\n") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
