// Shards made by the usual tools, and how TarShards reads them.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

#include "pipeline/storage/tar_help.hpp"

namespace drawpoint {
namespace {

using test::Bytes;
using test::TemporaryFolder;

const std::filesystem::path fixture = std::filesystem::path{DRAWPOINT_TEST_DIR} / "pipeline" / "storage" / "fixture";
const std::vector<std::string> pictures{"0.jpg", "1.jpg", "2.jpeg", "3.png", "4.webp", "5.jpg"};

void run_tar(const std::filesystem::path& in, const std::string& arguments) {
    BOOST_TEST_REQUIRE(std::system(("cd '" + in.string() + "' && tar " + arguments).c_str()) == 0);
}

BOOST_AUTO_TEST_SUITE(tar_shards)

BOOST_AUTO_TEST_CASE(shards_of_pythons_webdataset_read_as_what_went_in) {
    const TarShards shards{(fixture / "cls-0000.tar").string()};
    BOOST_TEST_REQUIRE(shards.size() == pictures.size());
    BOOST_TEST(shards.num_classes() == 11u);
    BOOST_TEST(shards.random_access());
    for (std::size_t i = 0; i < pictures.size(); ++i) {
        BOOST_TEST(shards.label(i) == std::int64_t(2 * i));
        BOOST_CHECK(test::read_of(shards, i) == test::file_bytes(fixture / pictures[i]));
        BOOST_TEST(shards.path(i) ==
                   (fixture / "cls-0000.tar").string() + ":sample000" + std::to_string(i) + pictures[i].substr(1));
    }
}

BOOST_AUTO_TEST_CASE(labels_come_from_json_and_the_first_dot_of_the_last_part_ends_the_key) {
    const TarShards shards{(fixture / "json.tar.gz").string()};
    BOOST_TEST_REQUIRE(shards.size() == pictures.size());
    BOOST_TEST(!shards.random_access());
    for (const std::size_t i : {0u, 1u, 2u, 3u, 4u, 5u}) {
        BOOST_TEST(shards.label(i) == std::int64_t(5 - i));
        BOOST_CHECK(test::read_of(shards, i) == test::file_bytes(fixture / pictures[i]));
    }
    BOOST_TEST(shards.path(3) == (fixture / "json.tar.gz").string() + ":a.b/sample3.png");
    BOOST_TEST(shards.location(0).offset == 0u);
}

BOOST_AUTO_TEST_CASE(every_format_of_gnu_tar_is_read_with_names_of_any_length) {
    const TemporaryFolder folder;
    const std::string deep = std::string(90, 'd') + '/' + std::string(90, 'e') + '/' + std::string(120, 'f');
    const std::vector<std::string> keys{"short", std::string(99, 'a'), std::string(130, 'b'), deep, "über"};
    for (std::size_t i = 0; i < keys.size(); ++i) {
        folder.write("in/" + keys[i] + ".jpg", test::noise(3000 * i, std::uint32_t(i)));
        folder.write("in/" + keys[i] + ".cls", test::bytes_of(" " + std::to_string(i) + "\n"));
    }
    for (const std::string format : {"gnu", "oldgnu", "pax", "posix"}) {
        for (const std::string compress : {"", "-z", "--zstd"}) {
            const std::string name = "shard-" + format +
                                     (compress == ""     ? ".tar"
                                      : compress == "-z" ? ".tgz"
                                                         : ".tar.zst");
            run_tar(folder.path() / "in", compress + " --sort=name --format=" + format + " -cf ../" + name + " .");
            const TarShards shards{(folder.path() / name).string()};
            BOOST_TEST_REQUIRE(shards.size() == keys.size());
            std::set<std::string> seen;
            for (std::size_t i = 0; i < shards.size(); ++i) {
                const auto label = static_cast<std::size_t>(shards.label(i));
                BOOST_TEST(shards.path(i) == (folder.path() / name).string() + ":./" + keys[label] + ".jpg");
                BOOST_CHECK(test::read_of(shards, i) == test::noise(3000 * label, std::uint32_t(label)));
                seen.insert(shards.path(i));
            }
            BOOST_TEST(seen.size() == keys.size());
        }
    }
    for (const std::size_t too_long : {1u, 2u, 3u})
        for (const std::string field : {".jpg", ".cls"})
            std::filesystem::remove(folder.path() / "in" / (keys[too_long] + field));
    const std::string split = std::string(90, 'p') + '/' + std::string(40, 'q');
    folder.write("in/" + split + "/x.jpg", test::bytes_of("prefix"));
    folder.write("in/" + split + "/x.cls", test::bytes_of("9"));
    run_tar(folder.path() / "in", "--format=ustar -cf ../ustar.tar *");
    const TarShards shards{(folder.path() / "ustar.tar").string()};
    BOOST_TEST_REQUIRE(shards.size() == 3u);
    BOOST_TEST(shards.path(0) == (folder.path() / "ustar.tar").string() + ":" + split + "/x.jpg");
}

BOOST_AUTO_TEST_CASE(what_old_gnu_headers_have_after_the_name_is_no_part_of_it) {
    std::string header = test::HandMadeTar::header("a.jpg", 3);
    header.replace(257, 8, std::string_view{"ustar  \0", 8});
    header.replace(345, 11, "14716473210");   // the time of the last access
    test::HandMadeTar::seal(header);
    test::HandMadeTar tar{header + test::HandMadeTar::padded("abc")};
    tar.add("a.cls", "1");
    const test::TemporaryFolder folder;
    const TarShards shards{folder.write("gnu.tar", test::bytes_of(tar.ended())).string()};
    BOOST_TEST_REQUIRE(shards.size() == 1u);
    BOOST_TEST(test::read_of(shards, 0).size() == 3u);
}

BOOST_AUTO_TEST_CASE(sizes_beyond_octal_are_read_in_base_256_and_in_pax_records) {
    const TemporaryFolder folder;
    const std::string image(700, 'i');
    std::string binary = test::HandMadeTar::header("a.jpg", 0);
    binary.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\x02\xbc", 12));
    test::HandMadeTar::seal(binary);
    test::HandMadeTar tar;
    tar.bytes = binary + test::HandMadeTar::padded(image);
    tar.add("a.cls", "1");
    tar.add("pax", test::pax_record("size", "700") + test::pax_record("path", "elsewhere/long.jpg"), 'x');
    tar.bytes += test::HandMadeTar::header("ignored", 3) + test::HandMadeTar::padded(image);
    tar.add("elsewhere/long.cls", "2");
    const TarShards shards{folder.write("a.tar", test::bytes_of(tar.ended())).string()};
    BOOST_TEST_REQUIRE(shards.size() == 2u);
    for (const std::size_t i : {0u, 1u})
        BOOST_CHECK(test::read_of(shards, i) == test::bytes_of(image));
    BOOST_TEST(shards.path(1).ends_with(":elsewhere/long.jpg"));
}

BOOST_AUTO_TEST_CASE(of_several_images_jpg_goes_first_and_of_two_labels_cls) {
    const TemporaryFolder folder;
    test::HandMadeTar tar;
    tar.add("k.png", "png").add("k.seg.jpg", "mask").add("k.JPG", "jpg").add("k.json", R"({"cls": 7, "label": 6})");
    tar.add("k.cls", "4")
        .add("n.webp", "webp")
        .add("n.json", R"({"cls": 7})")
        .add(".hidden.jpg", "no")
        .add("__m__", "no");
    const TarShards shards{folder.write("a.tar", test::bytes_of(tar.ended())).string()};
    BOOST_TEST_REQUIRE(shards.size() == 2u);
    BOOST_CHECK(test::read_of(shards, 0) == test::bytes_of("jpg"));
    BOOST_TEST(shards.label(0) == 4);
    BOOST_CHECK(test::read_of(shards, 1) == test::bytes_of("webp"));
    BOOST_TEST(shards.label(1) == 7);
}

BOOST_AUTO_TEST_CASE(absolute_names_and_dots_are_labels_and_nothing_is_written) {
    const TemporaryFolder folder;
    test::HandMadeTar tar;
    tar.sample("/abs/../x", "absolute", 0).sample("../../y", "above", 1);
    folder.write("a.tar", test::bytes_of(tar.ended()));
    const TarShards shards{folder.path().string()};
    BOOST_CHECK(test::read_of(shards, 0) == test::bytes_of("absolute"));
    BOOST_CHECK(test::read_of(shards, 1) == test::bytes_of("above"));
    BOOST_TEST(shards.path(1) == (folder.path() / "a.tar").string() + ":../../y.jpg");
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::recursive_directory_iterator{folder.path()})
        ++files;
    BOOST_TEST(files == 1u);
}

BOOST_AUTO_TEST_CASE(braces_and_folders_name_shards_in_order) {
    const TemporaryFolder folder;
    for (int i = 7; i < 12; ++i) {
        const std::string number = i < 10 ? "0" + std::to_string(i) : std::to_string(i);
        folder.write("train-" + number + ".tar", test::bytes_of(test::HandMadeTar{}.sample("k", "image", i).ended()));
    }
    folder.write("notes.txt", {});
    folder.write(".train-99.tar", {});
    const std::string root = folder.path().string();
    const auto labels = [](const TarShards& shards) {
        std::vector<std::int64_t> all;
        for (std::size_t i = 0; i < shards.size(); ++i)
            all.push_back(shards.label(i));
        return all;
    };
    const std::vector<std::int64_t> middle{8, 9, 10}, all{7, 8, 9, 10, 11}, two{11, 7};
    BOOST_TEST(labels(TarShards{root + "/train-{08..10}.tar"}) == middle, boost::test_tools::per_element());
    BOOST_TEST(labels(TarShards{root + "/{train}-{11,07}.tar"}) == two, boost::test_tools::per_element());
    BOOST_TEST(labels(TarShards{root}) == all, boost::test_tools::per_element());
    BOOST_TEST(TarShards{root}.shard_path(4) == root + "/train-11.tar");
    BOOST_TEST(names_tar_shards(root));
    BOOST_TEST(names_tar_shards("somewhere/train-{0..3}.tar"));
    BOOST_TEST(!names_tar_shards(folder.path().parent_path().string() + "/a.jpg"));
    for (const std::string wrong :
         {"/{1..2", "/{2..1}.tar", "/{a..b}.tar", "/{0..4000000000}.tar", "/{{1}}.tar", "/{0..999}{0..999}.tar"})
        BOOST_CHECK_EXCEPTION(TarShards{root + wrong}, std::invalid_argument, [&](const std::invalid_argument& error) {
            return std::string_view{error.what()}.starts_with(root + wrong);
        });
    BOOST_CHECK_THROW(TarShards{root + "/train-{08..12}.tar"}, std::filesystem::filesystem_error);
    BOOST_CHECK_THROW(TarShards{root + "/none"}, std::filesystem::filesystem_error);
}

BOOST_AUTO_TEST_CASE(classes_txt_beside_the_shards_names_the_classes) {
    const TemporaryFolder folder;
    const auto shard =
        folder.write("a.tar", test::bytes_of(test::HandMadeTar{}.sample("k", "image", 1).ended())).string();
    BOOST_TEST(TarShards{shard}.num_classes() == 2u);
    BOOST_TEST(TarShards{shard}.class_name(1) == "1");
    folder.write("classes.txt", test::bytes_of("cat\r\ndog\nfox\n"));
    const TarShards shards{shard};
    BOOST_TEST(shards.num_classes() == 3u);
    BOOST_TEST(shards.class_name(1) == "dog");
    BOOST_CHECK_THROW((void)shards.class_name(3), std::out_of_range);
    folder.write("classes.txt", test::bytes_of("cat\n"));
    test::check_refused(shard, 0, "label 1, but classes.txt names 1");
    folder.write("classes.txt", test::bytes_of("cat\n\ndog\n"));
    BOOST_CHECK_THROW(TarShards{shard}, std::invalid_argument);
    std::filesystem::remove(folder.path() / "classes.txt");
    std::filesystem::create_directory(folder.path() / "classes.txt");
    BOOST_CHECK_EXCEPTION(TarShards{shard}, std::invalid_argument, [](const std::invalid_argument& error) {
        return std::string_view{error.what()}.find("not a regular file") != std::string_view::npos;
    });
}

BOOST_AUTO_TEST_CASE(shards_leave_descriptors_to_others) {
    const TemporaryFolder folder;
    for (int i = 10; i < 27; ++i)
        folder.write("all/" + std::to_string(i) + ".tar",
                     test::bytes_of(test::HandMadeTar{}.sample("k", "image", i).ended()));
    const std::string all = (folder.path() / "all").string(), most = all + "/{10..25}.tar";
    struct Limit {
        rlimit before{};
        std::vector<int> taken;
        explicit Limit(rlim_t most) {
            BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
            rlimit now = before;
            now.rlim_cur = most;
            BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &now) == 0);
        }
        void take_all_but(std::size_t left) {
            for (int copy = 0; (copy = ::dup(0)) >= 0;)
                taken.push_back(copy);
            for (; left > 0; --left, taken.pop_back())
                ::close(taken.back());
        }
        ~Limit() {
            for (const int copy : taken)
                ::close(copy);
            (void)::setrlimit(RLIMIT_NOFILE, &before);
        }
    } limit{64};
    const auto stay_open = [](const TarShards& shards) { return shards.location(0).descriptor >= 0; };
    BOOST_TEST(stay_open(TarShards{most}));   // a quarter of 64
    BOOST_TEST(!stay_open(TarShards{all}));
    limit.take_all_but(6);
    const TarShards shards{most};
    BOOST_TEST(!stay_open(shards));
    for (std::size_t i = 0; i < shards.size(); ++i)
        BOOST_CHECK(test::read_of(shards, i) == test::bytes_of("image"));
}

BOOST_AUTO_TEST_CASE(a_location_holds_the_bytes_that_read_gives) {
    const TarShards shards{(fixture / "cls-0000.tar").string()};
    for (std::size_t i = 0; i < shards.size(); ++i) {
        const TarRange range = shards.location(i);
        const Bytes file = test::file_bytes(range.path), image = test::read_of(shards, i);
        BOOST_TEST(range.descriptor >= 0);
        BOOST_TEST_REQUIRE(range.offset + range.bytes <= file.size());
        BOOST_TEST(range.bytes == shards.bytes(i));
        BOOST_CHECK(Bytes(file.begin() + std::ptrdiff_t(range.offset),
                          file.begin() + std::ptrdiff_t(range.offset + range.bytes)) == image);
    }
}

BOOST_AUTO_TEST_CASE(a_shard_that_changed_after_it_was_opened_is_an_error) {
    const TemporaryFolder folder;
    const auto path =
        folder.write("a.tar", test::bytes_of(test::HandMadeTar{}.sample("k", std::string(900, 'i'), 1).ended()));
    const TarShards shards{path.string()};
    Bytes contents;
    std::filesystem::resize_file(path, 700);
    BOOST_CHECK_THROW(shards.read(0, contents), TarError);
    folder.write("a.tar", Bytes(4096, std::byte{'x'}));
    BOOST_CHECK_THROW(shards.read(0, contents), TarError);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
