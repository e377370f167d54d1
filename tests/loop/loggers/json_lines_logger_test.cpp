#include <drawpoint/loop/loggers/file_loggers.hpp>

#include <array>
#include <limits>
#include <sstream>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "support/temporary_folder.hpp"

namespace {

using namespace drawpoint;
using nlohmann::json;

std::vector<json> lines_of(const std::filesystem::path& path) {
    std::vector<json> lines;
    std::istringstream text{test::bytes_in(path)};
    for (std::string line; std::getline(text, line);)
        lines.push_back(json::parse(line));
    return lines;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(json_lines_logger)

BOOST_AUTO_TEST_CASE(every_record_is_a_whole_line_as_soon_as_it_is_logged) {
    const test::TemporaryFolder folder;
    JsonLinesLogger logger{folder / "metrics.jsonl"};
    const std::array scalars{Scalar{"throughput/step", 1645.5}, Scalar{"throughput/draw", -154.25}};
    logger.log_scalars(scalars, 12);
    const std::array durations{0.5, 0.25};
    logger.log_summary("fit/duration", durations);
    logger.log_table("profile_report", {{"Phase"}, {{"fit"}, {"train"}}});
    const auto lines = lines_of(folder / "metrics.jsonl");
    BOOST_REQUIRE_EQUAL(lines.size(), 3u);
    BOOST_TEST(lines[0].at("step") == 12);
    BOOST_TEST(lines[0].at("time_s") > 1e9);
    BOOST_TEST(lines[0].at("scalars") == json({{"throughput/step", 1645.5}, {"throughput/draw", -154.25}}));
    BOOST_TEST(lines[1].at("summary") == "fit/duration");
    BOOST_TEST(lines[1].at("values") == json({0.5, 0.25}));
    BOOST_TEST(lines[2].at("columns") == json::array({"Phase"}));
    BOOST_TEST(lines[2].at("rows").size() == 2u);
}

BOOST_AUTO_TEST_CASE(what_is_not_finite_is_null_and_what_is_not_text_does_no_harm) {
    const test::TemporaryFolder folder;
    JsonLinesLogger logger{folder / "metrics.jsonl"};
    const std::array scalars{Scalar{"a\xff\n", std::numeric_limits<double>::quiet_NaN()}};
    logger.log_scalars(scalars, 1);
    const std::array values{std::numeric_limits<double>::infinity()};
    logger.log_summary("b", values);
    const auto lines = lines_of(folder / "metrics.jsonl");
    BOOST_REQUIRE_EQUAL(lines.size(), 2u);
    BOOST_TEST(lines[0].at("scalars").begin()->is_null());
    BOOST_TEST(lines[1].at("values").at(0).is_null());
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_told_and_never_thrown) {
    JsonLinesLogger logger{"/dev/full"};
    const std::array scalars{Scalar{"a", 1}};
    logger.log_scalars(scalars, 1);
    BOOST_TEST(logger.error() == "/dev/full: No space left on device");
}

BOOST_AUTO_TEST_SUITE_END()
