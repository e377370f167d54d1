#include <fstream>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include <drawpoint/diagnosis/verdict/detail/refutation.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>

#include "tests/cli/program.hpp"

namespace {

using namespace drawpoint::test;
using Json = nlohmann::ordered_json;

/// Two recordings of a worker that reads for 1 ms per sample, for a loop that takes no time: one with enough steps for
/// a verdict, and one with too few.
struct Recorded {
    Recorded() {
        for (const auto& [file, samples] : {std::pair{run, "960"}, {shorter, "48"}})
            BOOST_REQUIRE(run_program({"profile", "--data", std::string{"synthetic:"} + samples, "--image-size", "8",
                                       "--model", "none", "--compute-ms", "1", "--batch-size", "4", "--num-workers",
                                       "1", "--inject", "read-latency=1ms", "-o", file})
                              .code == 0);
    }
    TemporaryFolder folder;
    std::string run = folder.file("run.pftrace"), shorter = folder.file("short.pftrace");
};

const Recorded& recorded() {
    static const Recorded run;
    return run;
}

Json json_of(const Result& result) {
    BOOST_TEST(result.code == 0, result.err);
    return Json::parse(result.out);
}

/// Writes a trace like PyTorch's: 30 steps of 10 ms, 4 ms of which are spent in the loader.
std::string write_torch_trace(const TemporaryFolder& folder) {
    Json events = Json::array();
    for (int step = 0; step < 30; ++step) {
        const auto add = [&](const std::string& name, int from_us, int us) {
            events.push_back({{"ph", "X"},
                              {"cat", "user_annotation"},
                              {"name", name},
                              {"pid", 1},
                              {"tid", 1},
                              {"ts", 1000 + step * 10'000 + from_us},
                              {"dur", us}});
        };
        add("ProfilerStep#" + std::to_string(step), 0, 10'000);
        add("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1, 4000);
    }
    const std::string file = folder.file("trace.json");
    std::ofstream{file} << Json{{"traceEvents", events}}.dump();
    return file;
}

BOOST_AUTO_TEST_SUITE(diagnose_command)

BOOST_AUTO_TEST_CASE(a_recording_gets_a_verdict_or_is_told_why_not) {
    const Json found = json_of(run_program({"diagnose", recorded().run, "--json"}));
    BOOST_TEST(found.begin().key() == "schema");
    BOOST_TEST(found["schema"] == "drawpoint.diagnosis/1");
    BOOST_TEST(found["command"].get<std::string>().starts_with("drawpoint diagnose "));
    if (found["abstained"].is_null()) {   // a busy machine is a reason to abstain
        BOOST_TEST(found["interventions"].size() > 5);
        BOOST_TEST(found["verdict"] != "undecided");
        BOOST_TEST(found["verdict"] != "compute-bound");
    } else {
        BOOST_TEST(found["interventions"].empty());
        BOOST_TEST(found["advice"].is_null());
    }
    BOOST_TEST(!found["blame"].empty());
    BOOST_TEST(found["blame_max_residual_ns"] == 0);
}

BOOST_AUTO_TEST_CASE(a_short_run_says_how_many_steps_are_missing) {
    const Json found = json_of(run_program({"diagnose", recorded().shorter, "--json"}));
    BOOST_TEST(found["verdict"] == "undecided");
    BOOST_TEST(found["abstained"].get<std::string>().starts_with("needs "));
    BOOST_TEST(found["more_steps_needed"].get<int>() >= 38);
    const Result text = run_program({"diagnose", recorded().shorter});
    BOOST_TEST(text.out.starts_with("verdict: undecided (no verdict: needs "), text.out);
}

BOOST_AUTO_TEST_CASE(text_markdown_and_a_file_beside_say_the_same) {
    const std::string file = recorded().folder.file("found.json");
    const Result text = run_program({"diagnose", recorded().run, "--json=" + file});
    BOOST_TEST(text.code == 0, text.err);
    std::ifstream stream{file};
    const Json found = Json::parse(stream);
    const std::string verdict = found["verdict"];
    BOOST_TEST(text.out.starts_with("verdict: " + verdict), text.out);
    BOOST_TEST(run_program({"diagnose", recorded().run, "--markdown"}).out.starts_with("**Verdict**: " + verdict));
}

BOOST_AUTO_TEST_CASE(the_command_that_refutes_runs_as_printed_and_repeats_no_default) {
    drawpoint::OptionValues defaults;
    std::istringstream config{run_program({"profile", "--print-config"}).out};
    for (std::string line; std::getline(config, line);) {
        const std::size_t equals = line.find(" = ");
        std::string value = line.substr(equals + 3);
        if (value.starts_with('"'))
            value = value.substr(1, value.size() - 2);
        defaults.emplace_back(line.substr(0, equals), value);
    }
    BOOST_REQUIRE(defaults.size() > 20);
    const drawpoint::Ledger ledger = drawpoint::read_trace(recorded().run).ledger;
    const drawpoint::Intervention more{
        .lever = drawpoint::Lever::more_workers, .change = "num_workers 1 -> 3", .setting = {.num_workers = 3}};
    const std::string said = how_to_refute(ledger, more, defaults);
    std::istringstream words{said.substr(0, said.find(": throughput"))};
    std::vector<std::string> command;
    for (std::string word; words >> word;)
        command.push_back(word);
    BOOST_REQUIRE(command.size() > 3);
    BOOST_TEST(command.front() == "drawpoint");
    BOOST_TEST(command.size() <= 12u,
               said);   // data, image size, model, compute, batch, fault; the changed option and the file
    command.erase(command.begin());
    command.emplace_back("--print-config");
    const Result result = run_program(command);
    BOOST_TEST(result.code == 0, result.err);
    for (const auto& [name, value] : drawpoint::recorded_options(ledger)) {
        const std::string now = name == "num-workers" ? "3" : value, plain = name + " = " + now,
                          quoted = name + " = \"" + now + "\"", listed = name + " = [\"" + now + "\"]";
        BOOST_TEST((result.out.find(plain + "\n") != std::string::npos ||
                    result.out.find(quoted) != std::string::npos || result.out.find(listed) != std::string::npos),
                   plain << " is not in " << result.out);
    }
}

BOOST_AUTO_TEST_CASE(a_step_is_explained_by_its_number_or_the_longest) {
    const Result third = run_program({"diagnose", recorded().run, "--explain", "3"});
    BOOST_TEST(third.code == 0, third.err);
    BOOST_TEST(third.out.find("step 3") != std::string::npos, third.out);
    const Result longest = run_program({"diagnose", recorded().run, "--explain"});
    BOOST_TEST(longest.code == 0, longest.err);
    BOOST_TEST(!longest.out.empty());
    BOOST_TEST(run_program({"diagnose", "--explain", recorded().run}).out == longest.out);
    BOOST_TEST(json_of(run_program({"diagnose", recorded().run, "--explain", "--json"}))["explain"] == longest.out);
    check_complaint(run_program({"diagnose", recorded().run, "--explain", "999999"}), 2, {"--explain 999999"});
    check_complaint(run_program({"diagnose", recorded().run, "--explain", "first"}), 2, {"--explain", "'first'"});
}

BOOST_AUTO_TEST_CASE(a_torch_trace_is_split_and_no_verdict_is_made_up) {
    const TemporaryFolder folder;
    const std::string file = write_torch_trace(folder);
    const Json found = json_of(run_program({"diagnose", file, "--json"}));
    BOOST_TEST(found["verdict"] == "undecided");
    BOOST_TEST(!found["abstained"].is_null());
    BOOST_TEST(found["interventions"].empty());
    BOOST_TEST(found["split"]["draw_share"].get<double>() == 0.4, boost::test_tools::tolerance(0.01));
    BOOST_TEST(!found["split"]["cannot_tell"].empty());
    const Result text = run_program({"diagnose", file});
    BOOST_TEST(text.code == 0, text.err);
    BOOST_TEST(text.out.find("40") != std::string::npos, text.out);
    check_complaint(run_program({"diagnose", file, "--explain"}), 2, {"--explain", file});
}

BOOST_AUTO_TEST_CASE(the_report_begins_with_the_verdict_and_has_blame_and_trust) {
    const Json report = json_of(run_program({"report", recorded().run, "--json"}));
    BOOST_REQUIRE(report["draw"]["blame"].is_array());
    double share = 0;
    for (const Json& row : report["draw"]["blame"]) {
        BOOST_TEST(row["cause"].is_string());
        share += row["share"].get<double>();
    }
    BOOST_TEST(share == 1.0, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(report["trust"]["trusted"].is_boolean());
    BOOST_TEST(report["trust"]["reasons"].is_array());
    const std::string text = run_program({"report", recorded().run}).out;
    BOOST_TEST(text.starts_with("why the draw waits: "), text);
    BOOST_TEST(std::ranges::count(text, '\n') <= 24, text);
    BOOST_TEST(text.find("drawpoint report --full ") != std::string::npos, text);
    const std::string full = run_program({"report", recorded().run, "--full"}).out;
    BOOST_TEST(full.starts_with("why the draw waits: "), full);
    BOOST_TEST(std::ranges::count(full, '\n') > 40, full);
    check_complaint(run_program({"report", recorded().run, "--full", "--style", "tree"}), 2, {"--full"});
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_named) {
    const TemporaryFolder folder;
    check_complaint(run_program({"diagnose"}), 2, {"RUN"});
    check_complaint(run_program({"diagnose", folder.file("none.pftrace")}), 1, {folder.file("none.pftrace")});
    check_complaint(run_program({"diagnose", recorded().run, "--json", "--markdown"}), 2, {"--json", "--markdown"});
    check_complaint(run_program({"diagnose", recorded().run, "--explian"}), 2,
                    {"--explian", "did you mean --explain?"});
    check_complaint(run_program({"diagnose", recorded().run, "--json=" + recorded().run}), 2,
                    {recorded().run, "same file"});
}

BOOST_AUTO_TEST_CASE(a_page_and_a_picture_are_of_the_same_run) {
    const TemporaryFolder folder;
    const std::string run = folder.file("run.pftrace"), page = folder.file("run.html");
    BOOST_REQUIRE(run_program({"profile", "--data", "synthetic:96", "--image-size", "8", "--model", "none",
                               "--batch-size", "16", "-o", run})
                      .code == 0);
    const Result result = run_program({"diagnose", run, "--html", page});
    BOOST_TEST(result.code == 0, result.err);
    BOOST_TEST(bytes_in(page).find("Why the draw waits") != std::string::npos);
    BOOST_TEST(run_program({"diagnose", run, "--explain", "--svg"}).out.starts_with("<svg "));
    BOOST_TEST(run_program({"report", run, "--svg", "workers"}).out.starts_with("<svg "));
    check_complaint(run_program({"diagnose", run, "--html", page, "--json=" + page}), 2, {"--html", "same file"});
    check_complaint(run_program({"diagnose", run, "--svg"}), 2, {"--svg", "--explain"});
    check_complaint(run_program({"report", run, "--svg", "pie"}), 2, {"--svg", "flame"});
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
