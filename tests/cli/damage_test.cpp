#include <fstream>

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace {

using namespace drawpoint::test;
using Json = nlohmann::ordered_json;

std::vector<std::string> profile(const TemporaryFolder& folder, const std::string& data,
                                 std::initializer_list<std::string> more = {}) {
    std::vector<std::string> all{
        "profile", "--model", "none", "--image-size", "16", "--batch-size", "4", "-o", folder.file("run.pftrace"),
        "--data",  data};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

BOOST_AUTO_TEST_SUITE(damage)

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_used_is_named) {
    const TemporaryFolder folder;
    check_complaint(run_program(profile(folder, folder.file("missing"))), 1, {folder.file("missing")});
    std::filesystem::create_directory(folder.file("empty"));
    check_complaint(run_program(profile(folder, folder.file("empty"))), 1, {folder.file("empty")});
    std::filesystem::create_directories(folder.file("hollow/class"));
    check_complaint(run_program(profile(folder, folder.file("hollow"))), 1, {folder.file("hollow")});
    std::filesystem::create_symlink("loop", folder.file("loop"));   // unreadable even for root
    check_complaint(run_program(profile(folder, folder.file("loop"))), 1, {folder.file("loop")});
    std::ofstream{folder.file("file")} << "x";
    check_complaint(run_program(profile(folder, folder.file("file"))), 1, {folder.file("file")});
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_decoded_ends_the_run_and_is_named_in_the_report) {
    const TemporaryFolder folder;
    const auto photos = folder.path() / "photos";
    make_photos(photos);
    const std::filesystem::path victim =
        std::filesystem::recursive_directory_iterator{photos / "generated-00"} -> path();
    const auto whole = std::filesystem::file_size(victim);
    for (const bool truncated : {true, false}) {
        if (truncated)
            std::filesystem::resize_file(victim, whole / 2);
        else
            std::ofstream{victim} << "this is not a JPEG";
        const Result result = run_program(profile(folder, photos.string(), {"--json"}));
        check_complaint(result, 1, {victim.string()});
        const Json report = Json::parse(result.out);
        BOOST_REQUIRE(report["errors"].size() >= 1u);
        BOOST_TEST(report["errors"][0]["path"] == victim.string());
        BOOST_TEST(report["run"]["stopped"].get<std::string>().starts_with("error: "));
    }
}

BOOST_AUTO_TEST_CASE(validation_data_of_other_classes_is_refused) {
    const TemporaryFolder folder;
    make_photos(folder.path() / "photos");
    make_photos(folder.path() / "others");
    std::filesystem::rename(folder.path() / "others/generated-00", folder.path() / "others/strange");
    check_complaint(run_program(profile(folder, folder.file("photos"), {"--valid", folder.file("others")})), 1,
                    {"--valid", "strange"});
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_recording_is_named) {
    const TemporaryFolder folder;
    check_complaint(run_program({"report", folder.file("missing.pftrace")}), 1, {"missing.pftrace"});
    std::ofstream{folder.file("text.pftrace")} << "this is not a recording, however long it may be";
    check_complaint(run_program({"report", folder.file("text.pftrace")}), 1, {"text.pftrace"});
    std::ofstream{folder.file("empty.pftrace")};
    check_complaint(run_program({"report", folder.file("empty.pftrace")}), 1, {"empty.pftrace"});
    check_complaint(run_program({"report", folder.path().string()}), 1, {folder.path().string()});
    check_complaint(run_program({"report"}), 2, {"RUN"});
}

BOOST_AUTO_TEST_CASE(a_cut_recording_is_reported_on_with_a_warning_and_one_cut_too_early_has_no_steps) {
    const TemporaryFolder folder;
    BOOST_REQUIRE(run_program(profile(folder, "synthetic:400")).code == 0);
    const std::string file = folder.file("run.pftrace");
    const auto whole = std::filesystem::file_size(file);
    for (const std::uint64_t cut_at : {whole - 100, whole * 2 / 3, whole / 2}) {
        std::filesystem::resize_file(file, cut_at);
        const Result cut = run_program({"report", file, "--json"});
        check_complaint(cut, 0, {file, "cut"});
        const Json report = Json::parse(cut.out);
        BOOST_TEST(report["rows"].size() > 0u);
        BOOST_TEST(report["conservation"]["max_residual_ns"] == 0);
    }
    std::filesystem::resize_file(file, 3000);
    const Result early = run_program({"report", file});
    BOOST_TEST(early.code == 1);
    BOOST_TEST(early.err.find("no steps") != std::string::npos, early.err);
    BOOST_TEST(early.out.empty());
}

BOOST_AUTO_TEST_CASE(a_full_disk_ends_the_recording_and_not_the_training) {
    const TemporaryFolder folder;
    for (const bool device : {true, false}) {
        const std::string file = device ? "/dev/full" : folder.file("small.pftrace");
        const Result result = run_program({"profile", "--model", "none", "--image-size", "8", "--batch-size", "4",
                                           "--data", "synthetic:400", "--json", "-o", file},
                                          {.most_file_bytes = device ? std::uint64_t{0} : std::uint64_t{40'000}});
        check_complaint(result, 0, {file});
        const Json report = Json::parse(result.out);
        BOOST_TEST(report["run"]["steps"] == 100);
        BOOST_TEST(report["conservation"]["max_residual_ns"] == 0);
        BOOST_TEST(report["recording"]["error"].is_string());
    }
    check_complaint(run_program(profile(folder, "synthetic:8", {"-o", folder.file("no/such.pftrace")})), 1,
                    {"no/such.pftrace"});
    BOOST_REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
    check_complaint(run_program(profile(folder, "synthetic:8", {"-o", folder.file("pipe")})), 1, {"pipe"});
}

BOOST_AUTO_TEST_CASE(a_name_with_control_characters_stays_on_its_line) {
    const TemporaryFolder folder;
    check_complaint(run_program(profile(folder, folder.file("a\nb\x1b[2J"))), 1, {"a\\nb\\x1b[2J"});
    make_photos(folder.path() / "a\nb");
    const auto victim =
        std::filesystem::recursive_directory_iterator{folder.path() / "a\nb" / "generated-00"} -> path();
    std::filesystem::resize_file(victim, 200);
    check_complaint(run_program(profile(folder, folder.file("a\nb"))), 1,
                    {"a\\nb", victim.filename().string()});   // the whole text on one line
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
