#include <drawpoint/bench/suite/suite.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <drawpoint/bench/experiment/command.hpp>
#include <drawpoint/bench/experiment/experiment.hpp>

#include "support/shell_output.hpp"
#include "support/temporary_folder.hpp"

namespace drawpoint::bench {
namespace {

using Ended = test::ShellOutput;

Ended run(const std::string& arguments, const std::string& before = "") {
    return test::run_by_shell(before + DRAWPOINT_SUITE_ROWS + " " + arguments);
}

nlohmann::json once(const std::string& row, const std::string& more = "") {
    return nlohmann::json::parse(run("1 --once " + row + " " + more).output);
}

const nlohmann::json& metric(const nlohmann::json& turn, const std::string& name) {
    for (const nlohmann::json& row : turn["metrics"])
        if (row["name"] == name)
            return row;
    throw std::out_of_range{"no metric " + name + " in " + turn.dump()};
}

bool contains(const std::string& text, const std::string& part) {
    if (text.find(part) != std::string::npos)
        return true;
    BOOST_TEST_MESSAGE(text);
    return false;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(suite)

BOOST_AUTO_TEST_CASE(a_row_measures_itself_in_a_process_of_its_own_without_the_run_that_warms_up) {
    const auto turn = once("counts", "--runs 3");
    BOOST_TEST(turn["schema"] == "drawpoint.turn/1");
    BOOST_TEST(metric(turn, "sum of numbers")["value"] == 6);   // 1 + 2 + 3
    BOOST_TEST(metric(turn, "wall time")["unit"] == "seconds");
    BOOST_TEST(metric(turn, "wall time")["compared"] == true);
    BOOST_TEST(metric(turn, "peak memory")["value"].get<double>() > 500'000);
    BOOST_TEST(metric(turn, "items/s")["value"].get<double>() > 0);
    BOOST_TEST((metric(turn, "part")["items"] == nlohmann::json{1.0, 2.0, 3.0, nullptr}));
    BOOST_TEST(!turn.contains("digest"));
    const auto slept = once("once", "--runs 4 --digest");
    BOOST_TEST(metric(slept, "wall time")["value"].get<double>() >= 0.001);
    BOOST_TEST(slept["digest"] == "0000000000000007");
    BOOST_TEST(once("once", "--runs 4 --digest")["digest"] != once("'another output'", "--digest")["digest"]);
    BOOST_TEST(metric(once("command"), "page faults")["value"].get<double>() > 10);   // the command's
}

BOOST_AUTO_TEST_CASE(a_loader_measures_its_draws_and_each_stage_by_the_place_of_the_sample) {
    const auto turn = once("loader", "--runs 2 --digest");
    const auto& items = metric(turn, "write")["items"];
    BOOST_TEST(items.size() == 24u);   // of the same epoch in both runs
    BOOST_TEST(std::ranges::count_if(items, [](const auto& item) { return item.is_number(); }) == 24);
    BOOST_TEST(metric(turn, "count")["compared"] == true);
    BOOST_TEST(metric(turn, "first batch")["value"].get<double>() > 0);
    BOOST_TEST(metric(turn, "draw p50")["value"].get<double>() <= metric(turn, "draw p99")["value"].get<double>());
    BOOST_TEST(turn["digest"] == once("shuffled", "--digest")["digest"]);   // in another order and other batches
    BOOST_TEST(turn["digest"] != once("seeded", "--digest")["digest"]);
}

BOOST_AUTO_TEST_CASE(a_program_measures_its_rows_and_says_which_did_not_run_or_have_another_output) {
    const test::TemporaryFolder folder;
    const Ended ended =
        run("1 --rounds 20 --turn-ms 5 --seed 1 --row once --row twice --row broken --row 'another output' "
            "--row counts --row loader --json=" +
            folder.file("all.json") + " --to csv=" + folder.file("all.csv"));
    BOOST_TEST(ended.status == 1);
    BOOST_TEST(contains(ended.output, "not run: broken: broken ended with exit code 1: rows for a test: no such disk"));
    BOOST_TEST(contains(ended.output, "another output has another output than once"));
    BOOST_TEST(contains(ended.output, "loader has another output than once"));
    BOOST_TEST(contains(ended.output, "20 rounds"));
    const auto document = nlohmann::json::parse(std::ifstream{folder.file("all.json")});
    BOOST_TEST(document["suite"] == "rows for a test");
    BOOST_TEST(document["contenders"].size() == 6u);
    const auto slower = [](const nlohmann::json& one) {
        return one["contender"] == "twice" && one["metric"] == "wall time" && one["finding"] == "slower";
    };
    BOOST_TEST(std::ranges::count_if(document["comparisons"], slower) == 1);
    BOOST_TEST(std::filesystem::file_size(folder.file("all.csv")) > 100u);

    const Ended good = run("1 --rounds 2 --turn-ms 0 --row loader --row shuffled --json");
    BOOST_TEST(good.status == 0);
    const auto good_document = nlohmann::json::parse(good.output);
    BOOST_TEST(good_document["contenders"][1]["differs"].empty());
    BOOST_TEST(good_document["contenders"][1]["parts"][0]["digest"].is_string());
}

BOOST_AUTO_TEST_CASE(rows_of_a_suite_take_their_runs_in_slices_side_by_side) {
    const test::TemporaryFolder folder;
    const std::string log = folder.file("log");
    BOOST_TEST(run("1 --row a --row b --rounds 4 --turn-ms 200", "DRAWPOINT_SUITE_LOG=" + log + " ").status == 0);
    std::ifstream file{log};
    const std::string letters{std::istreambuf_iterator{file}, {}};
    // A round has 20 slices of each row, or as many as a busy machine leaves time to run.
    std::size_t changes = 0;
    for (std::size_t i = 1; i < letters.size(); ++i)
        changes += letters[i] != letters[i - 1];
    BOOST_TEST(changes > 20, letters);   // rows that run one after the other change twice a round
}

BOOST_AUTO_TEST_CASE(a_row_that_fails_between_its_runs_is_left_out_with_its_reason) {
    const Ended ended = run("1 --rounds 3 --turn-ms 0 --row once --row 'fails later' --row counts");
    BOOST_TEST(ended.status == 0, ended.output);   // a turn has one run
    const std::string program = DRAWPOINT_SUITE_ROWS;
    const auto it = make_command("it", program + " 1 --row once --row 'fails later'", Reports::suite);
    it->prepare();
    BOOST_TEST(it->take_turn(2).values.size() == it->metrics().size());
    auto reason = [&] {
        try {
            (void)it->take_turn(3);
        } catch (const NotRun& failure) {
            return std::string{failure.what()};
        }
        return std::string{"it ran"};
    }();
    BOOST_TEST(contains(reason, "it: "));
    BOOST_TEST(contains(reason, "the disk is full"));
    BOOST_TEST(it->take_turn(1).values.size() == it->metrics().size());   // afterwards it can run again
}

/// Whether any process runs this program with such a word.
bool runs_with(const std::string& word) {
    for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
        std::ifstream file{entry.path() / "cmdline", std::ios::binary};
        const std::string words{std::istreambuf_iterator{file}, {}};
        if (words.starts_with(DRAWPOINT_SUITE_ROWS) && words.find(word) != words.npos)
            return true;
    }
    return false;
}

BOOST_AUTO_TEST_CASE(a_row_runs_step_by_step_and_can_be_given_up_or_cancelled_between_them) {
    const std::string program = DRAWPOINT_SUITE_ROWS;
    const auto it = make_command("it", program + " 1 --row counts --row once", Reports::suite);
    it->prepare();
    auto& pausing = dynamic_cast<PausingContender&>(*it);
    BOOST_REQUIRE(pausing.sections().size() == 2u);
    for (const bool again : {true, false}) {
        pausing.begin(0);
        pausing.run(1);
        if (again)
            continue;   // given up by the next begin()
        pausing.run(2);
        pausing.end();
        pausing.begin(1);
        pausing.run(1);
        pausing.end();
        const Turn turn = pausing.results();
        const auto sum = std::ranges::find(it->metrics(), "counts: sum of numbers", &Metric::name);
        BOOST_REQUIRE(sum != it->metrics().end());
        BOOST_TEST(turn.values[static_cast<std::size_t>(sum - it->metrics().begin())] == 6);   // 1 + 2 + 3
        BOOST_TEST(turn.values.size() == it->metrics().size());
    }
    pausing.begin(0);
    pausing.run(1);
    BOOST_TEST(runs_with("--once=counts"));
    it->cancel();
    BOOST_CHECK_THROW(pausing.run(1), Cancelled);
    BOOST_TEST(!runs_with("--once=counts"));
    BOOST_CHECK_THROW(pausing.begin(0), Cancelled);
    {
        const auto left = make_command("left", program + " 1 --row once", Reports::suite);
        left->prepare();
        dynamic_cast<PausingContender&>(*left).begin(0);
        BOOST_TEST(runs_with("--once=once"));
    }
    BOOST_TEST(!runs_with("--once=once"));   // the destructor has ended it
}

BOOST_AUTO_TEST_CASE(a_row_that_dies_is_noticed_although_something_else_has_its_channel) {
    const auto it = make_command("it", "sleep 30 & " DRAWPOINT_SUITE_ROWS " 1 --row 'fails later'", Reports::suite);
    it->prepare();
    const auto begin = std::chrono::steady_clock::now();
    BOOST_CHECK_THROW((void)it->take_turn(3), NotRun);
    BOOST_TEST((std::chrono::steady_clock::now() - begin < std::chrono::seconds{20}));   // not when `sleep` ends
}

BOOST_AUTO_TEST_CASE(a_row_that_is_asked_for_twice_is_measured_once) {
    const Ended ended = run("1 --row a --row b --row a --rounds 1 --turn-ms 0 --json");
    BOOST_TEST(ended.status == 0, ended.output);
    BOOST_TEST(nlohmann::json::parse(ended.output)["contenders"].size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_pipe_takes_the_json_and_no_file_is_written_twice) {
    const test::TemporaryFolder folder;
    const Ended ended =
        run("1 --row a --rounds 1 --turn-ms 0 --json=" + folder.file("pipe") + " > /dev/null; wait; cat " +
                folder.file("out"),
            "mkfifo " + folder.file("pipe") + "; cat " + folder.file("pipe") + " > " + folder.file("out") + " & ");
    BOOST_TEST(nlohmann::json::parse(ended.output)["contenders"].size() == 1u);
    const std::string file = folder.file("twice");
    BOOST_TEST(run("1 --json=" + file + " --to csv=" + file).status == 2);
    BOOST_TEST(!std::filesystem::exists(file));
}

BOOST_AUTO_TEST_CASE(wrong_options_are_named) {
    for (const auto& [arguments, words] :
         std::vector<std::pair<std::string, std::string>>{{"--row nothing", "nothing not in"},
                                                          {"--rounds -1", "--rounds"},
                                                          {"--to xlsx=a", "got 'xlsx'"},
                                                          {"--to csv", "must be FORMAT=FILE, got 'csv'"},
                                                          {"--once once --runs 0", "--runs"},
                                                          {"words", "words"}}) {
        const Ended ended = run("1 " + arguments);
        BOOST_TEST(ended.status == 2);
        BOOST_TEST(contains(ended.output, words));
    }
    BOOST_TEST(run("1 --help").status == 0);
    const Ended nobody = run("1 --once once --steps 3>&-");
    BOOST_TEST(nobody.status == 1);
    BOOST_TEST(contains(nobody.output, "descriptor 3"));
    BOOST_TEST(run("1 --once once --steps --runs 2").status == 2);
    Suite twice{"it"};
    twice.add_function("a", [] {});
    BOOST_CHECK_THROW(twice.add_function("a", [] {}), std::invalid_argument);
    BOOST_CHECK_THROW(twice.add_function("a\nb", [] {}), std::invalid_argument);
    BOOST_CHECK_THROW(twice.add_function("", [] {}), std::invalid_argument);
    BOOST_CHECK_THROW(twice.add_command("b", " "), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(ctrl_c_ends_a_suite_and_shows_what_there_is) {
    // --foreground: else the signal comes twice, to the process and to its group, and the second one ends it at once.
    const Ended ended =
        run("1 --row once --row twice --turn-ms 0 --rounds 10000", "timeout --foreground --preserve-status -s INT 10 ");
    BOOST_TEST(ended.status == 130);
    BOOST_TEST(contains(ended.output, "wall time"));   // without a handler there would be no table
}

BOOST_AUTO_TEST_CASE(a_suite_takes_its_own_options_out_of_the_command_line) {
    std::string words[]{"program", "--data", "a", "--rounds", "3", "--data=b"};
    std::vector<char*> argv;
    for (std::string& word : words)
        argv.push_back(word.data());
    int argc = static_cast<int>(argv.size());
    Suite it{"it"};
    BOOST_TEST(it.take_option(argc, argv.data(), "--data", "where") == "b");   // the last one
    BOOST_TEST(it.take_option(argc, argv.data(), "--compute-ms", "how long") == "");
    BOOST_REQUIRE(argc == 3);
    BOOST_TEST(argv[2] == std::string{"3"});
    BOOST_CHECK_THROW((void)it.take_option(argc, argv.data(), "3", ""), std::invalid_argument);
    BOOST_TEST(it.options().size() == 3u);
}

BOOST_AUTO_TEST_CASE(two_builds_of_a_suite_are_raced_row_by_row) {
    const std::string program = DRAWPOINT_SUITE_ROWS;
    const std::string rows = " --row once --row twice --row counts";
    std::vector<std::unique_ptr<Contender>> builds;
    builds.push_back(make_command("old", program + " 1" + rows, Reports::suite));
    builds.push_back(make_command("new", "true && " + program + " 3" + rows, Reports::suite));   // by a shell
    Experiment experiment{std::move(builds)};
    experiment.prepare();
    for (int round = 0; round < 20; ++round)
        experiment.run_round();
    const Measurements& measured = experiment.measurements();
    BOOST_TEST(measured.flaws[0].empty() == is_optimised);
    const auto finding = [&](const std::string& name) {
        for (const Comparison& one : compare(measured))
            if (measured.metrics[one.metric].name == name)
                return one.finding;
        BOOST_TEST_REQUIRE(false, "no comparison of " << name);
        return Finding::too_few_rounds;
    };
    BOOST_TEST((finding("twice: wall time") == Finding::slower));
    BOOST_TEST((finding("once: wall time") != Finding::slower));
    const auto part = std::ranges::find(measured.metrics, "counts: part", &Metric::name);
    BOOST_REQUIRE(part != measured.metrics.end());
    BOOST_TEST(part->by_item);
    const auto place = static_cast<std::size_t>(part - measured.metrics.begin());
    BOOST_TEST(measured.log_ratios(1, place) == std::vector<double>(20), boost::test_tools::per_element());
    for (const std::string line : {"true", "echo hello", "echo '{\"rows\": [\"a\"]}' #"})
        BOOST_CHECK_THROW(make_command("it", line, Reports::suite)->prepare(), NotRun);
}

BOOST_AUTO_TEST_CASE(two_builds_with_another_output_or_fewer_rows_differ_and_others_do_not) {
    const auto prepared = [](const std::string& rows, const char* base, const char* candidate) {
        const std::string program = DRAWPOINT_SUITE_ROWS;
        std::vector<std::unique_ptr<Contender>> builds;
        builds.push_back(make_command("old", program + base + rows, Reports::suite));
        builds.push_back(make_command("new", program + candidate + rows, Reports::suite));
        Experiment experiment{std::move(builds)};
        experiment.prepare();
        return experiment.measurements();
    };
    const std::string outputs = " --row once --row 'another output' --row loader";
    BOOST_TEST(differing_parts(prepared(outputs, " 1", " 1"), 1).empty());
    BOOST_TEST(differing_parts(prepared(outputs, " 1", " 3"), 1) ==
                   std::vector<std::string>{"new has another output of row another output than old"},
               boost::test_tools::per_element());
    const std::string rows = " --row once --row broken --row 'of the old build'";
    const Measurements lost = prepared(rows, " 1", " 3");
    const std::vector<std::string> why = differing_parts(lost, 1);
    BOOST_REQUIRE(why.size() == 1u);   // not `broken`, which neither can run
    BOOST_TEST(contains(why[0], "new cannot run row of the old build"));
    BOOST_TEST(contains(why[0], "it was removed"));
    BOOST_TEST(lost.parts[0][1].not_run.empty() == false);
    BOOST_TEST(differing_parts(prepared(rows, " 3", " 1"), 1).empty());   // a new row
    BOOST_CHECK_THROW((void)prepared(" --row broken", " 1", " 1"), NotRun);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint::bench
