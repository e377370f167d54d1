#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace {

using namespace drawpoint::test;
using Json = nlohmann::ordered_json;

/// Records a run of 40 steps and one validation pass; returns its file.
std::string record(const TemporaryFolder& folder, const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"profile",
                                       "--data",
                                       "synthetic:400",
                                       "--image-size",
                                       "8",
                                       "--batch-size",
                                       "8",
                                       "--valid",
                                       "0.2",
                                       "--model",
                                       "none",
                                       "--compute-ms",
                                       "1",
                                       "-o",
                                       folder.file(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result result = run_program(arguments);
    BOOST_REQUIRE_MESSAGE(result.code == 0, result.err);
    return folder.file(name);
}

BOOST_AUTO_TEST_SUITE(compare_command)

BOOST_AUTO_TEST_CASE(the_change_is_named_and_its_row_has_most_of_the_difference) {
    const TemporaryFolder folder;
    const std::string before = record(folder, "a.pftrace", {"--num-workers", "1"}),
                      after = record(folder, "b.pftrace", {"--num-workers", "1", "--inject", "compute=20ms"});
    const Result result = run_program({"compare", before, after, "--json"});
    BOOST_TEST(result.code == 0, result.err);
    const Json found = Json::parse(result.out);
    BOOST_TEST(found["schema"] == "drawpoint.run-comparison/1");
    const std::int64_t all = found["b"]["wall_ns"].get<std::int64_t>() - found["a"]["wall_ns"].get<std::int64_t>();
    std::int64_t sum = 0;
    for (const Json& row : found["rows"])
        sum += row["difference_ns"].get<std::int64_t>();
    BOOST_TEST(sum == all);
    BOOST_TEST(all > 40 * 15'000'000);
    BOOST_TEST(found["rows"][0]["name"] == "forward");
    const Json& replay = found["replay"];
    BOOST_TEST(replay["missing"] == "");
    BOOST_REQUIRE(!replay["changes"].empty());
    BOOST_TEST(replay["changes"][0]["name"] == "compute");
    BOOST_TEST(replay["changes"][0]["step_difference_ns"].get<double>() > 10e6);
    bool named = false;
    for (const Json& one : found["differences"])
        named = named || (one["name"] == "option.inject" && one["a"] == "" && one["b"] == "[\"compute=20ms\"]");
    BOOST_TEST(named, found["differences"].dump());

    const Result text = run_program({"compare", before, after});
    BOOST_TEST(text.out.find("train  forward") != std::string::npos, text.out);
    BOOST_TEST(text.out.find("with the second run's compute, ") != std::string::npos, text.out);
    const std::string html = folder.file("page.html"), svg = folder.file("chart.svg");
    BOOST_TEST(run_program({"compare", before, after, "--html", html, "--svg", svg}).code == 0);
    const auto text_of = [](const std::string& file) {
        std::ifstream stream{file};
        return std::string{std::istreambuf_iterator{stream}, {}};
    };
    BOOST_TEST(text_of(svg).starts_with("<svg xmlns="));
    BOOST_TEST(text_of(svg).find("<title>train forward: +") != std::string::npos);
    BOOST_TEST(text_of(html).find("with the second run's compute, ") != std::string::npos);
    const Json several = Json::parse(run_program({"compare", before, after, before, "--json"}).out);
    BOOST_TEST(several["schema"] == "drawpoint.run-comparisons/1");
    BOOST_REQUIRE(several["comparisons"].size() == 2u);
    BOOST_TEST(several["comparisons"][0]["rows"] == found["rows"]);
    BOOST_TEST(several["comparisons"][1]["rows"][0]["difference_ns"] == 0);
    BOOST_TEST(run_program({"compare", before, after, before}).out.find("a.pftrace and ") != std::string::npos);
    const Result none = run_program({"compare", before, before, "--json"});
    BOOST_TEST(Json::parse(none.out)["replay"]["changes"].empty());
    BOOST_TEST(run_program({"compare", before, after, "--markdown"}).out.find("| train | forward |") !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(files_of_results_are_shown_beside_the_first_without_a_verdict_on_times) {
    const TemporaryFolder folder;
    const auto google = [&](const std::string& name, double sort_us, const std::string& more) {
        std::ofstream{folder.file(name)}
            << R"({"context": {"num_cpus": 2}, "benchmarks": [{"name": "sort", "run_type": "iteration", "real_time": )"
            << sort_us << R"(, "cpu_time": 1, "time_unit": "us"})" << more << "]}";
        return folder.file(name);
    };
    const std::string a = google("a.json", 2, ""), b = google("b.json", 3, ""),
                      c = google("c.json", 1, R"(, {"name": "find", "real_time": 5, "cpu_time": 4})");
    const Result json = run_program({"compare", a, b, c, "--json"});
    BOOST_TEST(json.code == 0, json.err);
    const Json found = Json::parse(json.out);
    BOOST_TEST(found["schema"] == "drawpoint.result-comparison/1");
    BOOST_TEST(found["rows"][0]["name"] == "sort real_time");
    BOOST_TEST((found["rows"][0]["ratios"] == Json{1.0, 1.5, 0.5}));
    BOOST_TEST(found["rows"][2]["name"] == "find real_time");
    BOOST_TEST((found["rows"][2]["medians"] == Json{nullptr, nullptr, 5e-9}));
    BOOST_TEST(found["no_verdict_on_times"].get<std::string>().starts_with("no verdict on times: "));
    const Result text = run_program({"compare", a, b});
    BOOST_TEST(text.out.find("×1.500") != std::string::npos, text.out);
    BOOST_TEST(text.out.find("no verdict on times") != std::string::npos);
    BOOST_TEST(
        run_program({"compare", a, b, "--markdown"}).out.find("| sort real_time | 2.00 µs | 3.00 µs | ×1.500 |") !=
        std::string::npos);

    const std::string rounds = folder.file("rounds.json");
    BOOST_REQUIRE(
        run_program({"bench", "--command", "it=true", "--rounds", "3", "--turn-ms", "0", "--json=" + rounds}).code ==
        0);
    const Result same = run_program({"compare", rounds, rounds});
    BOOST_TEST(same.out.find("it: page faults") != std::string::npos, same.out);
    BOOST_TEST(same.out.find("  equal\n") != std::string::npos, same.out);
    std::ofstream{folder.file("x.pftrace")} << "no results";
    check_complaint(run_program({"compare", a, folder.file("x.pftrace")}), 2, {"1 of the 2 files"});
    check_complaint(run_program({"compare", a, b, "--svg", folder.file("x.svg")}), 2, {"--svg"});
    check_complaint(run_program({"compare", a, google("d.json", 1, "oops")}), 1, {"d.json"});
}

BOOST_AUTO_TEST_CASE(what_cannot_be_compared_is_refused) {
    const TemporaryFolder folder;
    const std::string file = folder.file("x.pftrace");
    std::ofstream{file} << "no recording";
    check_complaint(run_program({"compare", file, file, file, "--svg", folder.file("x")}), 2, {"--svg", "got 3"});
    check_complaint(run_program({"compare", file, file, "--html", file}), 2, {"x.pftrace is read and written"});
    check_complaint(run_program({"compare", file, file, "--html", "/no/such/x"}), 1, {"/no/such/x"});
    check_complaint(run_program({"compare"}), 2, {"A is missing"});
    check_complaint(run_program({"compare", "x.pftrace"}), 2, {"B is missing"});
    check_complaint(run_program({"compare", "no-such.pftrace", "y.pftrace"}), 1, {"no-such.pftrace"});
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
