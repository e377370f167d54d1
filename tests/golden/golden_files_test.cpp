#include <boost/test/unit_test.hpp>

#include <cmath>
#include <stdexcept>

#include "golden/golden_files.hpp"

namespace {

using golden::Path;

/// The part of `name` before `end`, if it ends with it and is longer.
std::optional<std::string> before(const std::string& name, std::string_view end) {
    if (!name.ends_with(end) || name.size() == end.size())
        return {};
    return name.substr(0, name.size() - end.size());
}

/// Names the missing file that this one belongs to, or says why no test reads it; empty if it is read.
std::string why_unread(std::string_view group, const Path& path) {
    const std::string name = path.filename().string();
    const auto lacks = [&](const std::string& companion) {
        return std::filesystem::exists(path.parent_path() / companion) ? "" : "its " + companion + " is missing";
    };
    if (group.starts_with("g2_"))
        for (const char* end : {".plain.txt", ".markdown.md", ".csv"})
            if (const auto stem = before(name, end))
                return lacks(*stem + ".json");
    if (group == "g3_events") {
        if (const auto stem = before(name, ".input.json"))
            return lacks(*stem + ".txt");
        if (name.starts_with("show_training_loop_") && name.ends_with(".txt"))
            return "";
    }
    if (group == "g4_lightning") {
        if (name.starts_with("advanced_") && name.ends_with(".masked.txt"))
            return "";
        if (const auto stem = before(name, ".txt"); stem && stem->starts_with("simple_")) {
            for (const auto& [file, document] : golden::documents(group, "scripts"))
                for (const golden::Json& one : document.at("cases"))
                    if (file.parent_path() == path.parent_path() &&
                        "simple_" + one.at("input").value("id", "") == *stem)
                        return "";
            return "its script is missing";
        }
    }
    if (group == "g6_kineto") {
        for (const char* end : {".key_averages.json", ".loop_truth.json", ".table_self_cpu.txt", ".table_by_shape.txt",
                                ".table_count_all.txt"})
            if (const auto stem = before(name, end))
                return lacks(*stem + ".json").empty() ? "" : lacks(*stem + ".json.gz");
        if (name.ends_with(".json.gz") ||
            (name.ends_with(".txt") && (name.find(".table_stack") != name.npos || name.find(".stacks_") != name.npos)))
            return "";
    }
    return name.ends_with(".json") ? "" : "no test reads it";   // tests of the groups check JSON files themselves
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_files)

BOOST_AUTO_TEST_CASE(every_file_of_every_folder_is_read_or_named) {
    for (const Path& folder : golden::folders()) {
        std::size_t found = 0;
        for (const auto& entry : std::filesystem::directory_iterator{folder}) {
            const std::string group = entry.path().filename().string();
            if (!entry.is_directory())
                continue;
            if (std::ranges::find(golden::groups, group) == golden::groups.end()) {
                BOOST_ERROR(entry.path().string() << ": no test reads this group");
                continue;
            }
            for (const Path& path : golden::files_in(folder, group)) {
                ++found;
                if (const std::string why = why_unread(group, path); !why.empty())
                    BOOST_ERROR(path.string() << ": " << why);
            }
        }
        BOOST_TEST(found > 0, folder.string() << " has no golden file");
    }
}

BOOST_AUTO_TEST_CASE(a_group_without_a_file_throws) {
    BOOST_CHECK_THROW(golden::documents("no_such_group", "fit"), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(only_plain_fits_are_selected) {
    using golden::Json;
    BOOST_TEST(golden::is_plain_fit(Json::parse(R"({"epochs": 1})")));
    BOOST_TEST(golden::is_plain_fit(Json::parse(R"({"gaps": [], "throw": null, "lr_finder": false, "logger": {}})")));
    BOOST_TEST(!golden::is_plain_fit(Json::parse(R"({"gaps": [{"order": 0}]})")));
    BOOST_TEST(!golden::is_plain_fit(Json::parse(R"({"throw": {"event": "after_batch"}})")));
    BOOST_TEST(!golden::is_plain_fit(Json::parse(R"({"grad_accum": 16})")));
    BOOST_TEST(!golden::is_plain_fit(Json::parse(R"({"nan_loss_at": 0})")));
    BOOST_TEST(!golden::is_plain_fit(Json::parse(R"({"logger": true})")));
    BOOST_TEST(!golden::is_plain_fit(Json::parse(R"({"lr_finder": true})")));
}

BOOST_AUTO_TEST_CASE(numbers_that_json_cannot_hold_are_read_from_text) {
    BOOST_TEST(std::isnan(golden::number("nan")));
    BOOST_TEST(golden::number("-inf") == -INFINITY);
    BOOST_TEST(golden::number(0.5) == 0.5);
    BOOST_CHECK_THROW(golden::number("seven"), std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()
