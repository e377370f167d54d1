// Recordings of earlier versions stay readable for ever. `recordings/` holds some from each version that wrote them
// differently, NAME.pftrace.gz, and the ledger that the same version read from each, NAME.json.gz (`drawpoint export
// --to json`). A later version may know more columns, but those that exist must have the same values.

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include <drawpoint/instrumentation/export/json.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>

#include "instrumentation/trace/recorded_run.hpp"

using namespace drawpoint;

namespace {

using Json = nlohmann::json;

const std::filesystem::path folder = std::filesystem::path{DRAWPOINT_TEST_DIR} / "instrumentation/trace/recordings";

std::string inflated(const std::filesystem::path& file) {
    std::string content;
    const gzFile in = ::gzopen(file.c_str(), "rb");
    BOOST_TEST_REQUIRE((in != nullptr), file.string());
    std::array<char, 1u << 16> piece;
    for (int got = 0; (got = ::gzread(in, piece.data(), piece.size())) > 0;)
        content.append(piece.data(), static_cast<std::size_t>(got));
    BOOST_TEST_REQUIRE(::gzclose(in) == Z_OK, file.string());
    return content;
}

/// The first place where `now` lacks or changes something of `before`; "" if there is none. Objects of `now` may have
/// more members.
std::string difference(const Json& before, const Json& now, const std::string& where = "") {
    if (before.is_object() && now.is_object()) {
        for (const auto& [key, value] : before.items()) {
            if (!now.contains(key))
                return where + "/" + key + " is missing";
            if (std::string found = difference(value, now[key], where + "/" + key); !found.empty())
                return found;
        }
        return "";
    }
    if (before.is_array() && now.is_array() && before.size() == now.size()) {
        for (std::size_t i = 0; i < before.size(); ++i)
            if (std::string found = difference(before[i], now[i], where + "/" + std::to_string(i)); !found.empty())
                return found;
        return "";
    }
    return before == now ? "" : where + " was " + before.dump().substr(0, 200) + ", is " + now.dump().substr(0, 200);
}

std::vector<std::string> kept_names() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{folder})
        if (const std::string name = entry.path().filename().string(); name.ends_with(".pftrace.gz"))
            names.push_back(name.substr(0, name.find('.')));
    std::sort(names.begin(), names.end());
    return names;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(recordings)

BOOST_AUTO_TEST_CASE(a_recording_of_an_earlier_version_is_read_to_the_ledger_that_this_version_read_from_it) {
    const std::vector<std::string> names = kept_names();
    BOOST_TEST(names.size() >= 11u);
    for (const std::string& name : names) {
        const TemporaryFile file{name + ".pftrace"};
        test::put_bytes(file.path(), inflated(folder / (name + ".pftrace.gz")));
        const ReadTrace read = read_trace(file.path());
        BOOST_TEST(!read.damaged, read.warning);
        std::ostringstream text;
        write_json_ledger(read.ledger, text);
        const Json before = Json::parse(inflated(folder / (name + ".json.gz")));
        BOOST_TEST(difference(before, Json::parse(text.str())) == "", name);
    }
}

BOOST_AUTO_TEST_CASE(a_column_more_is_no_difference_and_a_value_that_changed_or_is_gone_is) {
    const Json before = Json::parse(R"({"steps": [{"epoch": 0, "loss": null}]})");
    BOOST_TEST(difference(before, Json::parse(R"({"steps": [{"epoch": 0, "loss": null, "new": 1}], "more": []})")) ==
               "");
    BOOST_TEST(difference(before, Json::parse(R"({"steps": [{"epoch": 1, "loss": null}]})")) ==
               "/steps/0/epoch was 0, is 1");
    BOOST_TEST(difference(before, Json::parse(R"({"steps": [{"epoch": 0}]})")) == "/steps/0/loss is missing");
    BOOST_TEST(difference(before, Json::parse(R"({"steps": []})")) != "");
}

BOOST_AUTO_TEST_SUITE_END()
