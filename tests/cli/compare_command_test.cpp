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
    bool named = false;
    for (const Json& one : found["differences"])
        named = named || (one["name"] == "option.inject" && one["a"] == "" && one["b"] == "[\"compute=20ms\"]");
    BOOST_TEST(named, found["differences"].dump());

    const Result text = run_program({"compare", before, after});
    BOOST_TEST(text.out.find("train  forward") != std::string::npos, text.out);
    BOOST_TEST(run_program({"compare", before, after, "--markdown"}).out.find("| train | forward |") !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_compared_is_refused) {
    check_complaint(run_program({"compare"}), 2, {"A is missing"});
    check_complaint(run_program({"compare", "x.pftrace"}), 2, {"B is missing"});
    check_complaint(run_program({"compare", "no-such.pftrace", "y.pftrace"}), 1, {"no-such.pftrace"});
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
