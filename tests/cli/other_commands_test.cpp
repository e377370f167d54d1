#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace {

using namespace drawpoint::test;
using Json = nlohmann::ordered_json;

BOOST_AUTO_TEST_SUITE(other_commands)

BOOST_AUTO_TEST_CASE(the_doctor_says_what_there_is_and_what_its_lack_costs) {
    const Result text = run_program({"doctor"});
    BOOST_TEST(text.code == 0);
    BOOST_TEST(text.err.empty(), text.err);
    for (const std::string part : {"cores", "host", "clock", "counters", "libtorch", "threads", "reading", "gpu"})
        BOOST_TEST(text.out.find("\n" + part) != std::string::npos, part);
    const Json document = Json::parse(run_program({"doctor", "--json"}).out);
    BOOST_TEST(document["schema"] == "drawpoint.doctor/1");
    BOOST_TEST(document["findings"].size() >= 7u);
    BOOST_TEST(document["machine"]["cores_usable"].get<int>() >= 1);
}

BOOST_AUTO_TEST_CASE(photographs_are_generated_cut_and_checked) {
    const TemporaryFolder folder;
    BOOST_REQUIRE(run_program({"dataset", "generate", "--out", folder.file("photos"), "--count", "2"}).code == 0);
    const Result cut = run_program({"dataset", "crops", "--from", folder.file("photos"), "--out", folder.file("crops"),
                                    "--per-image", "5", "--size", "90x60"});
    BOOST_TEST(cut.code == 0, cut.err);
    const Result info = run_program({"dataset", "info", folder.file("crops/train"), "--json"});
    BOOST_TEST(info.code == 0, info.err);
    const Json found = Json::parse(info.out);
    BOOST_TEST(found["classes"] == 2);
    BOOST_TEST(found["largest_size"]["width"] == 90);
    BOOST_TEST(found["failures"].empty());

    const auto victim =
        std::filesystem::recursive_directory_iterator{folder.path() / "crops/train/generated-00"} -> path();
    std::filesystem::resize_file(victim, 200);
    check_complaint(run_program({"dataset", "info", "--data", folder.file("crops/train")}), 1, {victim.string()});
}

BOOST_AUTO_TEST_CASE(an_image_folder_is_packed_into_shards_that_info_checks) {
    const TemporaryFolder folder;
    BOOST_REQUIRE(run_program({"dataset", "generate", "--out", folder.file("photos"), "--count", "2"}).code == 0);
    BOOST_REQUIRE(run_program({"dataset", "crops", "--from", folder.file("photos"), "--out", folder.file("crops"),
                               "--per-image", "5", "--size", "90x60"})
                      .code == 0);
    const auto pack = [&](const std::string& option, const std::string& value) {
        return run_program({"dataset", "pack", "--from", folder.file("crops/train"), "--out", folder.file("shards"),
                            "--shard-size", "20kB", option, value});
    };
    check_complaint(pack("--shard-size", "0"), 2, {"--shard-size"});
    check_complaint(pack("--compress", "xz"), 2, {"--compress", "xz"});
    check_complaint(pack("--seed", "-1"), 2, {"--seed"});
    const Result packed = pack("--compress", "zst");
    BOOST_TEST(packed.code == 0, packed.err);
    check_complaint(pack("--compress", "zst"), 1, {folder.file("shards")});   // the folder exists
    const Result info = run_program({"dataset", "info", folder.file("shards"), "--check", "--json"});
    BOOST_TEST(info.code == 0, info.err);
    const Json found = Json::parse(info.out);
    BOOST_TEST(found["images"] == 10);
    BOOST_TEST(found["classes"] == 2);
    BOOST_TEST(found["shards"] == found["indexed_shards"]);
    BOOST_TEST(found["random_access"] == false);
    BOOST_TEST(found["largest_size"]["width"] == 90);
    const Result quick = run_program({"dataset", "info", folder.file("shards"), "--json"});
    BOOST_TEST(Json::parse(quick.out)["largest_size"].is_null());
    BOOST_TEST(Json::parse(quick.out)["checked"] == false);
}

BOOST_AUTO_TEST_CASE(info_says_nothing_of_the_sizes_of_images_none_of_which_can_be_read) {
    const TemporaryFolder folder;
    for (const std::string name : {"a/1.jpg", "b/2.jpg"})
        folder.write(name, std::vector<std::byte>(21));
    const Result info = run_program({"dataset", "info", folder.path().string()});
    BOOST_TEST(info.code == 1);
    BOOST_TEST(info.out.find("images     2 in 2 classes of 1 to 1") != std::string::npos, info.out);
    BOOST_TEST(info.out.find("files      0 others left out") != std::string::npos, info.out);
    BOOST_TEST(info.out.find("0x0") == std::string::npos, info.out);
    BOOST_TEST(info.out.find("0 B") == std::string::npos, info.out);
    const Json found = Json::parse(run_program({"dataset", "info", folder.path().string(), "--json"}).out);
    for (const std::string key : {"smallest_file_bytes", "median_file_bytes", "largest_file_bytes", "smallest_size",
                                  "median_size", "largest_size"})
        BOOST_TEST(found.at(key).is_null(), key);
}

BOOST_AUTO_TEST_CASE(a_packing_that_fails_or_is_interrupted_says_so_and_leaves_nothing) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.path() / "here");
    make_photos(folder.path() / "photos");
    const std::vector<std::string> pack{
        "dataset", "pack", "--from", folder.file("photos"), "--out", folder.file("here/shards")};
    check_complaint(run_program(pack, {.most_file_bytes = 5000}), 1, {"here/", "shard-000000.tar", "File too large"});
    BOOST_TEST(std::filesystem::is_empty(folder.path() / "here"));

    for (int i = 0; i < 3000; ++i)
        folder.write("many/" + std::to_string(i % 10) + "/" + std::to_string(i) + ".jpg", std::vector<std::byte>(200));
    Result caught;
    for (int tries = 0; tries < 20; ++tries) {   // on a busy machine the packing may be over before the signal arrives
        std::filesystem::remove_all(folder.file("here/many"));
        Program program{
            {"dataset", "pack", "--from", folder.file("many"), "--out", folder.file("here/many"), "--shard-size", "1"}};
        while (program.running() && std::filesystem::is_empty(folder.path() / "here"))
            std::this_thread::yield();
        program.interrupt();
        caught = program.wait();
        if (caught.code != 0)
            break;
    }
    check_complaint(caught, 130, {"here/many", "interrupted"});
    BOOST_TEST(std::filesystem::is_empty(folder.path() / "here"));
}

BOOST_AUTO_TEST_CASE(a_folder_without_a_photograph_to_cut_is_an_error) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.file("photos"));
    const std::vector<std::string> crops{"dataset",           "crops", "--from", folder.file("photos"), "--out",
                                         folder.file("crops")};
    check_complaint(run_program(crops), 1, {folder.file("photos"), "no photograph"});
    std::ofstream{folder.file("photos/a.jpg")} << "this is not a JPEG";
    const Result refused = run_program(crops);
    BOOST_TEST(refused.code == 1);
    BOOST_TEST(refused.err.find(folder.file("photos") + ": no crops: every photograph was left out, 1 in all") !=
                   std::string::npos,
               refused.err);
}

BOOST_AUTO_TEST_CASE(crops_of_an_earlier_run_do_not_stay_among_the_new_ones) {
    const TemporaryFolder folder;
    const auto generate = [&](const std::string& name, const std::string& count) {
        BOOST_REQUIRE(run_program({"dataset", "generate", "--out", folder.file(name), "--count", count}).code == 0);
    };
    const auto cut = [&](const std::string& from, const std::string& per_image, const std::string& held_out) {
        return run_program({"dataset", "crops", "--from", folder.file(from), "--out", folder.file("crops"),
                            "--per-image", per_image, "--size", "90x60", "--held-out", held_out});
    };
    const auto files_in = [&](const std::string& name) {
        std::size_t count = 0;
        for (const auto& entry : std::filesystem::directory_iterator{folder.file(name)})
            count += entry.is_regular_file() ? 1 : 0;
        return count;
    };
    generate("two", "2");
    generate("one", "1");
    BOOST_TEST(cut("two", "9", "0.2").code == 0);
    BOOST_TEST(files_in("crops/train/generated-00") == 9u);
    BOOST_TEST(cut("two", "4", "0.2").code == 0);
    BOOST_TEST(files_in("crops/train/generated-00") == 4u);
    check_complaint(cut("one", "4", "0.2"), 1, {folder.file("crops/train/generated-01")});
    check_complaint(cut("two", "4", "0"), 1, {folder.file("crops/valid/generated-0")});
    std::ofstream{folder.file("two/generated-01.jpg")} << "this is not a JPEG";
    BOOST_TEST(cut("two", "4", "0.2").code == 0);
    BOOST_TEST(!std::filesystem::exists(folder.file("crops/train/generated-01")));
    BOOST_TEST(files_in("crops/train/generated-00") == 4u);
}

BOOST_AUTO_TEST_CASE(bad_values_are_named) {
    const TemporaryFolder folder;
    for (const auto& [option, value] : std::vector<std::pair<std::string, std::string>>{{"--size", "500"},
                                                                                        {"--size", "0x10"},
                                                                                        {"--quality", "101"},
                                                                                        {"--held-out", "0.7"},
                                                                                        {"--per-image", "0"},
                                                                                        {"--seed", "-2"}})
        check_complaint(
            run_program({"dataset", "crops", "--from", folder.file("a"), "--out", folder.file("b"), option, value}), 2,
            {option, value});
    check_complaint(run_program({"dataset", "crops", "--out", folder.file("b")}), 2, {"--from"});
    check_complaint(run_program({"dataset", "crops", "--from", folder.file("none"), "--out", folder.file("b")}), 1,
                    {folder.file("none")});
    check_complaint(run_program({"dataset", "info", folder.file("none")}), 1, {folder.file("none")});
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
