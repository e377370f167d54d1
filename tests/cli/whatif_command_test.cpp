#include <fstream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace {

using namespace drawpoint::test;
using Json = nlohmann::ordered_json;

/// A recording of one worker that reads for 1 ms per sample, for a loop that takes 2 ms per batch of 4.
struct Recorded {
    Recorded() {
        BOOST_REQUIRE(
            run_program({"profile", "--data", "synthetic:480", "--image-size", "8", "--model", "none", "--compute-ms",
                         "2", "--batch-size", "4", "--num-workers", "1", "--inject", "read-latency=1ms", "-o", run})
                .code == 0);
    }
    TemporaryFolder folder;
    std::string run = folder.file("run.pftrace");
};

const Recorded& recorded() {
    static const Recorded run;
    return run;
}

Json predicted(std::vector<std::string> more) {
    std::vector<std::string> words{"whatif", recorded().run, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Result result = run_program(words);
    BOOST_TEST(result.code == 0, result.err);
    return Json::parse(result.out);
}

BOOST_AUTO_TEST_SUITE(whatif_command)

BOOST_AUTO_TEST_CASE(lists_and_ranges_make_a_grid) {
    const Json found = predicted({"--num-workers", "1..3,6", "--prefetch-depth", "2,4", "--order", "in,out"});
    BOOST_TEST(found["schema"] == "drawpoint.whatif/1");
    BOOST_REQUIRE(found["rows"].size() == 16);
    std::set<std::pair<int, int>> settings;
    int out = 0;
    for (const Json& row : found["rows"]) {
        settings.emplace(row["num_workers"].get<int>(), row["prefetch_depth"].get<int>());
        out += row["order"] == "out";
        BOOST_TEST(row["low"].get<double>() <= row["high"].get<double>());
        BOOST_TEST(row["peak_bytes"].get<double>() > 0);
    }
    BOOST_TEST(settings.size() == 8u);
    BOOST_TEST(out == 8);
}

BOOST_AUTO_TEST_CASE(more_workers_are_predicted_to_make_more_where_they_wait) {
    const Json found = predicted({"--num-workers", "1,2", "--prefetch-depth", "4"});
    BOOST_TEST(found["rows"][1]["batches_per_s"].get<double>() > 1.3 * found["rows"][0]["batches_per_s"].get<double>());
}

BOOST_AUTO_TEST_CASE(a_faster_stage_is_named_by_how_its_name_begins) {
    const std::vector<std::string> one{"--num-workers", "1", "--prefetch-depth", "4"};
    const double slow = predicted(one)["rows"][0]["batches_per_s"];
    std::vector<std::string> faster = one;
    faster.insert(faster.end(), {"--without-variance", "--speedup", "compute=1"});
    BOOST_TEST(predicted(faster)["rows"].size() == 1);
    BOOST_TEST(slow > 0);
    check_complaint(run_program({"whatif", recorded().run, "--speedup", "nosuch=2"}), 2,
                    {"--speedup nosuch=2", "compute"});
    check_complaint(run_program({"whatif", recorded().run, "--speedup", "compute"}), 2, {"--speedup", "compute"});
    check_complaint(run_program({"whatif", recorded().run, "--speedup", "compute=0"}), 2, {"--speedup", "compute=0"});
}

BOOST_AUTO_TEST_CASE(a_page_is_written_whose_title_cannot_act) {
    const TemporaryFolder folder;
    const std::string run = folder.file("<script>.pftrace"), page = folder.file("page.html");
    std::filesystem::copy_file(recorded().run, run);
    const Result result = run_program({"whatif", run, "--html", page});
    BOOST_TEST(result.code == 0, result.err);
    std::ifstream stream{page};
    const std::string html{std::istreambuf_iterator<char>{stream}, {}};
    BOOST_TEST(html.find("<svg") != std::string::npos);
    BOOST_TEST(html.find("<script>") == std::string::npos);
    BOOST_TEST(html.find("&lt;script&gt;.pftrace") != std::string::npos);
    BOOST_TEST(result.out.find("recommended: ") != std::string::npos, result.out);
}

BOOST_AUTO_TEST_CASE(the_recommended_setting_is_run_beside_the_recorded_one) {
    const Json found = predicted({"--num-workers", "1,2", "--prefetch-depth", "4", "--verify", "--rounds", "1"});
    const Json& verified = found["verified"];
    BOOST_TEST(verified["recorded"]["num_workers"] == 1);
    BOOST_TEST(verified["recommended"]["num_workers"] == found["recommended"]["num_workers"]);
    for (const char* side : {"recorded", "recommended"}) {
        BOOST_TEST(verified[side]["measured_batches_per_s"].get<double>() > 0);
        BOOST_TEST(verified[side]["runs_batches_per_s"].size() == 1);
        BOOST_TEST(verified[side]["predicted_batches_per_s"].get<double>() > 0);
    }
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_named) {
    const TemporaryFolder folder;
    const std::string& run = recorded().run;
    check_complaint(run_program({"whatif"}), 2, {"RUN"});
    check_complaint(run_program({"whatif", folder.file("none.pftrace")}), 1, {folder.file("none.pftrace")});
    check_complaint(run_program({"whatif", run, "--num-workers", "4..1"}), 2, {"--num-workers", "4..1"});
    check_complaint(run_program({"whatif", run, "--num-workers", "1..999"}), 2, {"--num-workers", "256"});
    check_complaint(run_program({"whatif", run, "--prefetch-depth", "0"}), 2, {"--prefetch-depth", "between 1 and"});
    check_complaint(run_program({"whatif", run, "--batch-size", "a"}), 2, {"--batch-size", "'a'"});
    check_complaint(run_program({"whatif", run, "--order", "in,sideways"}), 2, {"--order", "in,sideways"});
    check_complaint(run_program({"whatif", run, "--rounds", "0"}), 2, {"--rounds"});
    check_complaint(run_program({"whatif", run, "--html", run}), 2, {run, "same file"});
    check_complaint(run_program({"whatif", run, "--html", folder.file("none/a.html")}), 1,
                    {folder.file("none/a.html")});
    check_complaint(run_program({"whatif", run, "--verify", "--speedup", "compute=2"}), 2, {"--verify", "speedup"});
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
