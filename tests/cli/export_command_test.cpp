#include <algorithm>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace {

using namespace drawpoint::test;
using Json = nlohmann::ordered_json;

std::string contents(const std::string& file) {
    std::ifstream stream{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{stream}, {}};
}

/// A folder with a recording of six steps in `run.pftrace`.
struct Recorded {
    Recorded() {
        BOOST_REQUIRE(run_program({"profile", "--data", "synthetic:96", "--model", "none", "--batch-size", "16",
                                   "--num-workers", "2", "-o", run})
                          .code == 0);
    }
    TemporaryFolder folder;
    std::string run = folder.file("run.pftrace");
};

const Recorded& recorded() {
    static const Recorded run;
    return run;
}

BOOST_AUTO_TEST_SUITE(export_command)

BOOST_AUTO_TEST_CASE(a_recording_is_exported_beside_itself_under_the_formats_name) {
    for (const auto& [format, end] :
         std::vector<std::pair<std::string, std::string>>{{"chrome", ".pt.trace.json"},
                                                          {"speedscope", ".speedscope.json"},
                                                          {"folded", ".folded"},
                                                          {"csv", ".csv"},
                                                          {"json", ".ledger.json"}}) {
        const std::string file = recorded().folder.file("run" + end);
        const Result result = run_program({"export", recorded().run, "--to", format});
        BOOST_TEST(result.code == 0, result.err);
        BOOST_TEST(result.out.empty());
        BOOST_TEST(result.err == "drawpoint: wrote " + file + "\n");
        const Result streamed = run_program({"export", recorded().run, "--to", format, "-o", "-"});
        BOOST_TEST(streamed.code == 0, streamed.err);
        BOOST_TEST(streamed.err.empty(), streamed.err);
        BOOST_TEST(streamed.out.size() > 200u);
        if (format != "chrome")   // a Chrome trace contains its own name
            BOOST_TEST(streamed.out == contents(file));
    }
}

BOOST_AUTO_TEST_CASE(the_exported_steps_are_those_of_the_recording) {
    const Json ledger = Json::parse(run_program({"export", recorded().run, "--to", "json", "-o", "-"}).out);
    const Json chrome = Json::parse(run_program({"export", recorded().run, "--to", "chrome", "-o", "-"}).out);
    BOOST_TEST(ledger["schema"] == "drawpoint.ledger/1");
    BOOST_REQUIRE(ledger["steps"].size() == 6u);
    std::size_t steps = 0;
    for (const Json& event : chrome["traceEvents"])
        steps += event["name"].get<std::string>().starts_with("ProfilerStep#");
    BOOST_TEST(steps == 6u);
    const std::string csv = run_program({"export", recorded().run, "--to", "csv", "-o", "-"}).out;
    BOOST_TEST(std::count(csv.begin(), csv.end(), '\n') == 7);
    const std::string draw = "," + std::to_string(ledger["steps"][3]["draw_ns"].get<std::int64_t>()) + ",";
    BOOST_TEST(csv.find(draw) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_run_is_logged_for_trackers_and_prometheus_with_the_numbers_of_its_report) {
    const TemporaryFolder folder;
    for (const auto& [format, path] : std::vector<std::pair<std::string, std::string>>{{"tensorboard", "runs"},
                                                                                       {"wandb", "wandb"},
                                                                                       {"mlflow", "mlruns"},
                                                                                       {"prometheus", "run.prom"},
                                                                                       {"jsonl", "run.jsonl"}}) {
        const Result result = run_program({"export", recorded().run, "--to", format, "-o", folder.file(path)});
        BOOST_TEST(result.code == 0, result.err);
        BOOST_TEST(result.err.starts_with("drawpoint: wrote " + folder.file(path)), result.err);
    }
    const Json report = Json::parse(run_program({"report", recorded().run, "--json"}).out);
    std::ifstream lines{folder.file("run.jsonl")};
    std::size_t steps = 0, texts = 0;
    Json last, settings;
    for (std::string line; std::getline(lines, line);) {
        const Json record = Json::parse(line);
        if (record.contains("scalars")) {
            steps += record["scalars"].contains("drawpoint/draw_s") ? 1 : 0;
            last = record["scalars"];
        }
        texts += record.contains("markdown") ? 1 : 0;
        if (record.contains("settings"))
            settings = record["settings"];
    }
    BOOST_TEST(settings["num-workers"] == "2");
    BOOST_TEST(texts == 2u);   // the report and the verdict
    BOOST_TEST(steps == report["run"]["steps"].get<std::size_t>());
    BOOST_TEST(last["report/wall_s"] == report["run"]["wall_s"]);
    BOOST_TEST(last["report/starved_s"] == report["draw"]["starved_s"]);
    const std::string metrics = contents(folder.file("run.prom"));
    BOOST_TEST(metrics.find("\ndrawpoint_steps_total 6\n") != std::string::npos, metrics);
    for (const Json& row : report["rows"]) {
        const std::string name = "drawpoint_action_seconds_sum{phase=\"" + row["phase"].get<std::string>() +
                                 "\",action=\"" + row["action"].get<std::string>() + "\"} ";
        const std::size_t at = metrics.find(name);
        BOOST_REQUIRE(at != std::string::npos);
        BOOST_TEST(std::stod(metrics.substr(at + name.size())) == row["total_s"].get<double>());
    }
    const Result profile = run_program({"export", recorded().run, "--to", "xplane", "-o", folder.path().string()});
    BOOST_TEST(std::filesystem::exists(folder / "plugins/profile/run/drawpoint.xplane.pb"), profile.err);
}

BOOST_AUTO_TEST_CASE(no_export_replaces_its_recording_or_is_compressed_in_name_alone) {
    const TemporaryFolder folder;
    const std::string run = folder.file("run.pftrace");
    std::filesystem::copy_file(recorded().run, run);
    for (const std::string format : {"perfetto-sql", "prometheus", "jsonl", "xplane"})
        check_complaint(run_program({"export", run, "--to", format, "-o", run}), 2, {run, "same file"});
    BOOST_TEST(contents(run) == contents(recorded().run));
    check_complaint(run_program({"export", run, "--to", "jsonl", "-o", folder.file("a.jsonl.gz")}), 2,
                    {"jsonl", "compressed"});
    const std::string packed = folder.file("a.prom.gz");
    BOOST_TEST(run_program({"export", run, "--to", "prometheus", "-o", packed}).code == 0);
    BOOST_TEST(contents(packed).substr(0, 2) == "\x1f\x8b");
    const Result printed = run_program({"export", run, "--to", "prometheus", "-o", "-"});
    BOOST_TEST(printed.out.find("\ndrawpoint_steps_total 6\n") != std::string::npos, printed.err);
}

BOOST_AUTO_TEST_CASE(views_for_perfetto_are_printed_without_a_recording) {
    const Result result = run_program({"export", "--to", "perfetto-sql"});
    BOOST_TEST(result.code == 0, result.err);
    for (const std::string view : {"step", "draw", "piece", "batch", "sample", "stage", "worker", "setting"})
        BOOST_TEST(result.out.find("create view drawpoint_" + view + " as\n") != std::string::npos, view);
}

BOOST_AUTO_TEST_CASE(an_exported_chrome_trace_can_be_exported_again) {
    const TemporaryFolder folder;
    const std::string trace = folder.file("a.pt.trace.json.gz");
    BOOST_REQUIRE(run_program({"export", recorded().run, "--to", "chrome", "-o", trace}).code == 0);
    BOOST_TEST(contents(trace).substr(0, 2) == "\x1f\x8b");
    const Result csv = run_program({"export", trace, "--to", "csv"});
    BOOST_TEST(csv.code == 0, csv.err);
    const std::string text = contents(folder.file("a.csv"));
    BOOST_TEST(std::count(text.begin(), text.end(), '\n') == 7);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_named) {
    const TemporaryFolder folder;
    const std::string& run = recorded().run;
    check_complaint(run_program({"export", run}), 2, {"--to", "chrome"});
    check_complaint(run_program({"export", "--to", "csv"}), 2, {"RUN"});
    check_complaint(run_program({"export", run, "--to", "chrom"}), 2, {"--to chrom", "did you mean chrome?"});
    for (const std::string later : {"otava", "opentelemetry"})
        check_complaint(run_program({"export", run, "--to", later}), 2, {"--to " + later, "not delivered yet"});
    for (const std::string binary : {"pprof", "xplane", "tensorboard"})
        check_complaint(run_program({"export", run, "--to", binary, "-o", "-"}), 2, {"-o -", binary});
    for (const std::string tracker : {"tensorboard", "wandb", "mlflow", "prometheus", "jsonl"})
        check_complaint(run_program({"export", run, "--to", tracker, "-o", "/proc/none/x"}), 1, {"/proc/none"});
    check_complaint(run_program({"export", run, "--to", "csv", "-o", run}), 2, {run, "same file"});
    check_complaint(run_program({"export", folder.file("none.pftrace"), "--to", "csv"}), 1,
                    {folder.file("none.pftrace")});
    check_complaint(run_program({"export", run, "--to", "csv", "-o", folder.file("none/a.csv")}), 1,
                    {folder.file("none/a.csv"), "No such file"});
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_an_error_that_leaves_no_file) {
    const TemporaryFolder folder;
    const std::string file = folder.file("a.json");
    const Result result =
        run_program({"export", recorded().run, "--to", "json", "-o", file}, {.most_file_bytes = 2000});
    BOOST_TEST(result.code == 1);
    BOOST_TEST(result.err.find(file + ": File too large") != std::string::npos, result.err);
    BOOST_TEST(std::filesystem::is_empty(folder.path()));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
