#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace {

using namespace drawpoint::test;
using Json = nlohmann::ordered_json;

// An error so small that a false alarm would be a fault, not chance.
const std::vector<std::string> strict{"--error", "0.0001", "--turn-ms", "0", "--most-foreign", "100"};

Result gate_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "gate");
    arguments.insert(arguments.end(), strict.begin(), strict.end());
    return run_program(arguments);
}

BOOST_AUTO_TEST_SUITE(gate_command)

BOOST_AUTO_TEST_CASE(a_slower_command_ends_with_exit_code_3_and_the_row_that_says_so) {
    const TemporaryFolder folder;
    const Result result =
        gate_of({"--base", "sleep 0.01", "--new", "sleep 0.03", "--json=" + folder.file("gate.json"), "--seed", "5"});
    BOOST_TEST(result.code == 3, result.err);
    BOOST_TEST(result.out.find("\nslower: ") != std::string::npos, result.out);
    const Json document = Json::parse(std::ifstream{folder.file("gate.json")});
    BOOST_TEST(document["verdict_text"].get<std::string>().starts_with("slower: "));
    BOOST_TEST(document["schema"] == "drawpoint.experiment/1");
    BOOST_TEST(document["verdict"] == "slower");
    BOOST_TEST(document["seed"] == 5);
    BOOST_TEST(document["rounds"].size() < 60u);
    const Result again = gate_of({folder.file("gate.json"), "--json"});
    BOOST_TEST(again.code == 3, again.err);
    BOOST_TEST(Json::parse(again.out)["verdict_text"] == document["verdict_text"]);
    BOOST_TEST(document["comparisons"][0]["ratio"]["low"].get<double>() > 1);
}

BOOST_AUTO_TEST_CASE(recorded_rounds_are_judged_as_when_they_were_run) {
    const TemporaryFolder folder;
    const std::string file = folder.file("rounds.json");
    BOOST_REQUIRE(run_program({"bench", "--command", "old=sleep 0.005", "--command", "new=sleep 0.02", "--command",
                               "same=sleep 0.0051", "--rounds", "40", "--turn-ms", "0", "--json=" + file})
                      .code == 0);
    const Result slower = gate_of({file, "--new", "new", "--json"});
    BOOST_TEST(slower.code == 3, slower.err);
    const Json document = Json::parse(slower.out);
    BOOST_TEST(document["contenders"].size() == 2u);
    BOOST_TEST(document["contenders"][1]["name"] == "new");
    BOOST_TEST(document["rounds"].size() < 40u);   // those that the gate needed
    BOOST_TEST(gate_of({file, "--new", "same", "--at-least", "50", "--at-most", "90"}).code == 0);
    check_complaint(gate_of({file}), 2, {"--new is missing", "new, same"});
    check_complaint(gate_of({file, "--new", "old"}), 2, {"--new", "new, same"});
    check_complaint(gate_of({file, "--base", "true"}), 2, {"--base"});
    check_complaint(gate_of({folder.file("none.json")}), 1, {"none.json", "No such file"});
    std::ofstream{folder.file("other.json")} << R"({"schema": "drawpoint.summary/1"})";
    check_complaint(gate_of({folder.file("other.json")}), 1, {"other.json", "drawpoint.experiment/1"});
}

BOOST_AUTO_TEST_CASE(a_command_that_is_not_slower_passes) {
    const Result faster = gate_of({"--base", "sleep 0.03", "--new", "sleep 0.01", "--rounds", "40", "--json"});
    BOOST_TEST(faster.code == 0, faster.err);
    BOOST_TEST(Json::parse(faster.out)["comparisons"][0]["ratio"]["median"].get<double>() < 0.8);
    const Result same = gate_of({"--base", "sleep 0.005", "--new", "sleep 0.005", "--rounds", "40"});
    BOOST_TEST(same.code == 0, same.err);
}

BOOST_AUTO_TEST_CASE(a_gate_tells_github_and_writes_files_for_others) {
    const TemporaryFolder folder;
    const std::vector<std::string> arguments{"gate",       "--base",
                                             "sleep 0.01", "--new",
                                             "sleep 0.03", "--turn-ms",
                                             "0",          "--most-foreign",
                                             "100",        "--github",
                                             "--to",       "junit=" + folder.file("gate.xml"),
                                             "--to",       "google-benchmark=" + folder.file("gate.json")};
    const Result result = run_program(arguments, {.variables = {"GITHUB_STEP_SUMMARY=" + folder.file("summary.md")}});
    BOOST_TEST(result.code == 3, result.err);
    BOOST_TEST(result.out.find("::error title=drawpoint gate::slower: ") != std::string::npos);
    const auto text_of = [&](const char* name) {
        std::ifstream file{folder.file(name)};
        return std::string{std::istreambuf_iterator{file}, {}};
    };
    BOOST_TEST(text_of("summary.md").starts_with("**drawpoint gate: slower: "));
    BOOST_TEST(text_of("summary.md").find("| wall time | new | ") != std::string::npos);
    BOOST_TEST(text_of("gate.xml").find("<failure message=\"slower by ") != std::string::npos);
    BOOST_TEST(Json::parse(text_of("gate.json"))["benchmarks"].size() >= 2u * 8);
    check_complaint(run_program({"gate", "--base", "true", "--new", "true", "--to", "xlsx=x"}), 2, {"--to", "xlsx"});
    check_complaint(run_program({"gate", "--base", "true", "--new", "true", "--to", "csv=/no/such/x"}), 1,
                    {"/no/such/x"});
    const std::string twice = folder.file("twice");
    check_complaint(
        run_program({"gate", "--base", "true", "--new", "true", "--to", "csv=" + twice, "--to", "junit=" + twice}), 2,
        {"--to", twice});
    check_complaint(run_program({"gate", "--base", "true", "--new", "true", "--to", "csv=" + twice, "--json=" + twice}),
                    2, {"--to", twice});
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_written_in_the_end_does_not_change_the_verdict) {
    const TemporaryFolder folder;
    const std::string history = folder.file("history.csv");
    std::ofstream{history} << "time,commit,another row\n";
    const Result result =
        gate_of({"--base", "sleep 0.01", "--new", "sleep 0.03", "--to", "otava=" + history, "--github"});
    BOOST_TEST(result.code == 3, result.err);
    BOOST_TEST(result.err.find("--to otava=" + history + ": ") != std::string::npos, result.err);
    BOOST_TEST(result.out.find("::error title=drawpoint gate::slower: ") != std::string::npos, result.out);
}

BOOST_AUTO_TEST_CASE(requests_that_make_no_sense_are_refused) {
    check_complaint(gate_of({"--base", " ", "--new", "true"}), 2, {"--base"});
    check_complaint(gate_of({"--base", "true", "--new", "\t"}), 2, {"--new"});
    check_complaint(gate_of({"--base", "true", "--self-test", "--github"}), 2, {"--github", "--self-test"});
}

BOOST_AUTO_TEST_CASE(the_self_test_says_how_often_gates_are_wrong_here) {
    const Result result = gate_of({"--base", "sleep 0.005", "--self-test", "--rounds", "50", "--json"});
    BOOST_TEST(result.code == 0, result.err);
    const Json rows = Json::parse(result.out)["self_test"];
    BOOST_REQUIRE(rows.size() == 4u);
    BOOST_TEST(rows[0]["slower_by"] == 0);
    BOOST_TEST(rows[0]["closed"].get<double>() <= 0.01);
    BOOST_TEST(rows[3]["slower_by"] == 0.05);
}

// A run of an earlier version, kept: what no run counts more of must not grow from one version to the next. Whoever
// means it to grow keeps a new one: the command is the one below, from the build that is tested.
BOOST_AUTO_TEST_CASE(this_version_counts_no_more_than_the_one_whose_run_is_kept) {
    const TemporaryFolder folder;
    const Result run =
        run_program({"profile", "--data", "synthetic:64", "--image-size", "8", "--batch-size", "8", "--model", "none",
                     "--num-workers", "2", "--prefetch-depth", "3", "-o", folder.file("run.pftrace")});
    BOOST_REQUIRE_MESSAGE(run.code == 0, run.err);
    const Result result = run_program({"gate", DRAWPOINT_KEPT_RUN, folder.file("run.pftrace"), "--json"});
    BOOST_TEST(result.code == 0, result.out << result.err);
    const Json document = Json::parse(result.out);
    std::size_t equal = 0;
    for (const Json& row : document["rows"]) {
        BOOST_TEST(row["finding"] != "more", row.dump());
        equal += row["finding"] == "equal" ? 1 : 0;
    }
    BOOST_TEST(equal >= 6u, result.out);   // residual, lost, failed, bytes a sample, batch memory, memory planned
}

BOOST_AUTO_TEST_CASE(two_files_are_judged_by_what_they_count) {
    const TemporaryFolder folder;
    const auto record = [&](const char* name, const char* depth) {
        const Result result =
            run_program({"profile", "--data", "synthetic:64", "--image-size", "8", "--batch-size", "8", "--model",
                         "none", "--num-workers", "1", "--prefetch-depth", depth, "-o", folder.file(name)});
        BOOST_REQUIRE_MESSAGE(result.code == 0, result.err);
        return folder.file(name);
    };
    const std::string base = record("a.pftrace", "2"), same = record("b.pftrace", "2"),
                      deeper = record("c.pftrace", "6");
    const Result passes = run_program({"gate", base, same});
    BOOST_TEST(passes.code == 0, passes.out << passes.err);
    BOOST_TEST(passes.out.find("\nnothing more is counted; not judged: ") != std::string::npos, passes.out);
    BOOST_TEST(passes.out.find("\nof times there is no verdict: ") != std::string::npos, passes.out);
    BOOST_TEST(
        run_program({"gate", base, deeper, "--github"}, {.variables = {"GITHUB_STEP_SUMMARY=/no/such/file"}}).code ==
        3);   // that the summary cannot be written is said, and does not hide the verdict
    BOOST_TEST(passes.out.find("residual, ns") != std::string::npos, passes.out);
    const Result more = run_program({"gate", base, deeper, "--json=" + folder.file("gate.json"), "--github"},
                                    {.variables = {"GITHUB_STEP_SUMMARY=" + folder.file("summary.md")}});
    BOOST_TEST(more.code == 3, more.out << more.err);
    BOOST_TEST(more.out.starts_with("not the same: "), more.out);
    BOOST_TEST(more.out.find("::error title=drawpoint gate::more: batch memory") != std::string::npos, more.out);
    const Json document = Json::parse(std::ifstream{folder.file("gate.json")});
    BOOST_TEST(document["schema"] == "drawpoint.count-comparison/1");
    BOOST_TEST(document["verdict"] == "more");
    BOOST_TEST(run_program({"gate", deeper, base}).code == 0);

    const auto measure = [&](const char* name, const char* command) {
        BOOST_REQUIRE(run_program({"bench", "--command", command, "--rounds", "8", "--turn-ms", "0",
                                   "--json=" + folder.file(name)})
                          .code == 0);
        return folder.file(name);
    };
    const std::string small = measure("small.json", "it=true"), large = measure("large.json", "it=sh -c 'ls; ls; ls'");
    const Result faults = run_program({"gate", small, large, "--markdown"});
    BOOST_TEST(faults.code == 3, faults.out << faults.err);
    BOOST_TEST(faults.out.find("\nmore: it: page faults\n") != std::string::npos, faults.out);
    const auto google = [&](const char* name, const char* rows) {
        std::ofstream{folder.file(name)} << R"({"context": {"num_cpus": 2}, "benchmarks": [)" << rows << "]}";
        return folder.file(name);
    };
    const char* const counted = R"({"name": "BM_a", "real_time": 1, "cpu_time": 1, "allocs_per_iter": 3})";
    const std::string counts = google("counts.json", counted);
    const std::string fails = google(
        "fails.json",
        fmt::format(R"({}, {{"name": "BM_b", "error_occurred": true, "error_message": "why"}})", counted).c_str());
    check_complaint(run_program({"gate", counts, fails}), 1, {"no verdict", "BM_b failed: why"});
    const auto changed = [&](const char* name, const char* key, const Json& value) {
        Json results = Json::parse(std::ifstream{small});
        results["contenders"][0][key] = value;
        std::ofstream{folder.file(name)} << results;
        return folder.file(name);
    };
    const auto made = [](const char* digest, const char* why) {
        return Json::array({{{"name", "row"}, {"digest", digest}, {"not_run", why}}});
    };
    const std::string one = changed("one.json", "parts", made("1", "")),
                      two = changed("two.json", "parts", made("2", ""));
    BOOST_TEST(run_program({"gate", one, one}).code == 0);
    check_complaint(run_program({"gate", one, two}), 1, {"no verdict", "it row", "another output", "2, not 1"});
    check_complaint(run_program({"gate", one, changed("part.json", "parts", made("1", "why"))}), 1, {"it row: why"});
    check_complaint(run_program({"gate", one, changed("lost.json", "not_run", "why")}), 1, {"no verdict", "it: why"});
    check_complaint(run_program({"gate", one, one, two}), 2, {"unexpected argument", "two.json"});
    const std::string other = google(
        "other.json", fmt::format(R"({}, {{"name": "BM_b", "real_time": 1, "allocs_per_iter": 3}})", counted).c_str());
    const Result vanished = run_program({"gate", other, counts});
    BOOST_TEST(vanished.code == 0, vanished.err);
    BOOST_TEST(vanished.err.find("only one file counts BM_b allocs_per_iter") != std::string::npos, vanished.err);
    const std::string aggregates = google("mean.json", R"({"name": "BM_a_mean", "run_type": "aggregate"})");
    check_complaint(run_program({"gate", counts, aggregates}), 1, {"mean.json", "only aggregates"});
    check_complaint(run_program({"gate", base, small}), 2, {"small.json holds results", "a.pftrace does not"});
    check_complaint(run_program({"gate", base, folder.file("none")}), 1, {"none: No such file"});
    check_complaint(run_program({"gate", small, large, "--csv"}), 2, {"--csv"});
    check_complaint(run_program({"gate", small, large, "--to", "junit=" + folder.file("x")}), 2, {"--to"});
    check_complaint(run_program({"gate", small, large, "--new", "x"}), 2, {"--new"});
    check_complaint(run_program({"gate", small, large, "--base", "x"}), 2, {"--base"});
}

BOOST_AUTO_TEST_CASE(what_cannot_be_a_gate_is_refused) {
    check_complaint(run_program({"gate"}), 2, {"--base"});
    check_complaint(run_program({"gate", "--base", "true"}), 2, {"--new"});
    check_complaint(run_program({"gate", "--base", "true", "--new", "true", "--self-test"}), 2, {"--self-test"});
    check_complaint(run_program({"gate", "--base", "true", "--new", "true", "--rounds", "2"}), 2, {"--rounds 2"});
    check_complaint(run_program({"gate", "--base", "true", "--new", "true", "--at-most", "1"}), 2, {"--at-most"});
    check_complaint(run_program({"gate", "--base", "true", "--new", "sh -c 'exit 4'"}), 1, {"new: ", "exit code 4"});
    check_complaint(run_program({"gate", "--base", "true", "--new", "true", "--github", "--json"}), 2, {"--github"});
    const Result early = run_program({"gate", "--base", "sleep 1", "--new", "sleep 1", "--minutes", "0.01"});
    check_complaint(early, 1, {"--minutes", "round"});
    BOOST_TEST(early.out.find("wall time") != std::string::npos, early.out);   // what was measured is not lost
    check_complaint(run_program({"gate", "--base", "no-such-program", "--new", "true"}), 1, {"no-such-program"});
}

BOOST_AUTO_TEST_CASE(rounds_before_a_failure_are_kept_and_there_is_no_verdict) {
    const TemporaryFolder folder;
    std::ofstream{folder.file("tenth.sh")} << "echo >> \"$1\"; [ $(wc -l < \"$1\") -lt 10 ]";   // its tenth run fails
    const auto tenth = [&](const char* counter) {
        return "sh " + folder.file("tenth.sh") + " " + folder.file(counter);
    };
    const auto has = [](const std::string& text, const char* word) { return text.find(word) != std::string::npos; };
    const Result timed = run_program({"bench", "--rounds", "50", "--turn-ms", "0", "--command", "a=true", "--command",
                                      "b=" + tenth("bench"), "--json=" + folder.file("bench.json")});
    check_complaint(timed, 1, {"b: ", "exit code 1"});
    const Json kept = Json::parse(std::ifstream{folder.file("bench.json")});
    BOOST_TEST(kept["rounds"].size() > 2u);
    BOOST_TEST(kept["unfit"].get<std::string>().find("exit code 1") != std::string::npos);
    const Result raced = run_program({"gate", "--turn-ms", "0", "--error", "0.0001", "--base", "true", "--new",
                                      tenth("gate"), "--github", "--to", "junit=" + folder.file("gate.xml")});
    check_complaint(raced, 1, {"no verdict", "exit code 1"});
    BOOST_TEST(has(raced.out, "::error title=drawpoint gate::no verdict"), raced.out);
    std::ifstream file{folder.file("gate.xml")};
    const std::string junit{std::istreambuf_iterator<char>{file}, {}};
    BOOST_TEST(has(junit, "errors=\"1\""), junit);
    const Result never = run_program(
        {"gate", "--base", "true", "--new", "false", "--github", "--to", "junit=" + folder.file("never.xml")});
    check_complaint(never, 1, {"new: false", "exit code 1"});
    BOOST_TEST(has(never.out, "::error title=drawpoint gate::no verdict"), never.out);
    BOOST_TEST(std::filesystem::exists(folder.file("never.xml")));
}

BOOST_AUTO_TEST_CASE(commands_are_timed_in_rounds_and_compared_with_the_first) {
    const Result result = run_program({"bench", "--command", "short=sleep 0.005", "--command", "long=sleep 0.02",
                                       "--rounds", "30", "--turn-ms", "0", "--json"});
    BOOST_TEST(result.code == 0, result.err);
    const Json document = Json::parse(result.out);
    BOOST_TEST(document["contenders"][1]["name"] == "long");
    BOOST_TEST(document["contenders"][1]["description"] == "sleep 0.02");
    BOOST_TEST(document["contenders"][1]["medians"][0].get<double>() >= 0.02);
    BOOST_TEST(document["comparisons"][0]["finding"] == "slower");
    check_complaint(run_program({"bench", "--command", "sleep 1"}), 2, {"--command", "NAME="});
    check_complaint(run_program({"bench", "--command", "a= "}), 2, {"--command", "no command line"});
    check_complaint(run_program({"bench", "--rounds", "3"}), 2, {"--command"});
    check_complaint(run_program({"bench", "--command", "a=true", "--command", "a=true"}), 2,
                    {"two contenders are named a"});
}

BOOST_AUTO_TEST_CASE(commands_that_report_numbers_are_compared_by_them) {
    const auto reporting = [](const std::string& name, const std::string& number) {
        return name + "=echo '{\"loss\": " + number + "}'";
    };
    const Result result = run_program({"bench", "--reports", "numbers", "--command", reporting("old", "2"), "--command",
                                       reporting("new", "1.5"), "--rounds", "20", "--turn-ms", "0", "--json"});
    BOOST_TEST(result.code == 0, result.err);
    const Json found = Json::parse(result.out)["comparisons"][0];
    BOOST_TEST(found["metric"] == "loss");
    BOOST_TEST(found["finding"] == "faster");
    BOOST_TEST(found["ratio"]["median"].get<double>() == 0.75, boost::test_tools::tolerance(1e-12));
    check_complaint(run_program({"bench", "--reports", "numbers", "--command", "a=true"}), 1, {"a: true", "JSON"});
}

BOOST_AUTO_TEST_CASE(ctrl_c_ends_the_round_and_shows_what_there_is) {
    const TemporaryFolder folder;
    Program program{
        {"bench", "--command", "a=echo x >> " + folder.file("runs"), "--turn-ms", "0", "--rounds", "10000"}};
    const auto runs = [&] {
        std::ifstream file{folder.file("runs")};
        return std::count(std::istreambuf_iterator<char>{file}, {}, 'x');
    };
    while (runs() < 5)   // three to calibrate, then rounds
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    program.interrupt();
    const Result result = program.wait();
    BOOST_TEST(result.code == 130, result.err);
    BOOST_TEST(result.out.find("wall time") != std::string::npos, result.out);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
