#include <drawpoint/pipeline/image/dataset_info.hpp>

#include <drawpoint/pipeline/storage/file_reader.hpp>
#include "pipeline/image/encode.hpp"
#include "support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <vector>

BOOST_AUTO_TEST_SUITE(dataset_info)

using namespace drawpoint;

BOOST_AUTO_TEST_CASE(sizes_classes_and_bytes_are_counted_and_bad_files_named) {
    const test::TemporaryFolder root;
    std::uint64_t bytes = 0;
    for (const auto& [name, size] : {std::pair{"a/1.jpg", ImageSize{10, 90}}, std::pair{"a/2.jpg", ImageSize{30, 20}},
                                     std::pair{"b/3.jpg", ImageSize{20, 40}}})
        bytes += std::filesystem::file_size(root.write(name, test::jpeg_file(size)));
    auto cut = test::jpeg_file({64, 64});
    cut.resize(cut.size() / 2);
    bytes += std::filesystem::file_size(root.write("b/cut.jpg", cut));
    std::filesystem::create_symlink("nowhere", root.path() / "b/gone.jpg");
    root.write("b/readme.txt", {});
    for (const char* name : {"rgb8.png", "lossy.webp"}) {   // 19x17 and 41x31
        std::vector<std::byte> other;
        read_file((DRAWPOINT_TEST_DIR "/pipeline/image/fixtures/" + std::string{name}).c_str(), other);
        bytes += other.size();
        root.write(std::string{"c/"} + name, other);
    }

    auto gap = test::jpeg_file({64, 64});   // its header and its end stay whole
    gap.erase(gap.end() - static_cast<std::ptrdiff_t>(gap.size() / 3), gap.end() - 2);
    bytes += std::filesystem::file_size(root.write("c/gap.jpg", gap));

    const DatasetInfo info = drawpoint::dataset_info(ImageFolder{root.path()}, ImageCheck::pixels);
    BOOST_TEST(info.images == 8u);
    BOOST_TEST(info.classes == 3u);
    BOOST_TEST(info.ignored_files == 1u);
    BOOST_TEST(info.smallest_class == 2u);
    BOOST_TEST(info.largest_class == 3u);
    BOOST_TEST(info.bytes == bytes);
    BOOST_TEST((info.smallest == ImageSize{10, 17}));
    BOOST_TEST((info.median == ImageSize{20, 31}));
    BOOST_TEST((info.largest == ImageSize{41, 90}));
    BOOST_TEST(info.smallest_file <= info.median_file);
    BOOST_TEST(info.median_file <= info.largest_file);
    BOOST_REQUIRE(info.failures.size() == 3u);
    BOOST_TEST(info.failures[0].path == (root.path() / "b/cut.jpg").string());
    BOOST_TEST(info.failures[0].reason.find("truncated JPEG") == 0u);
    BOOST_TEST(info.failures[1].path == (root.path() / "b/gone.jpg").string());
    BOOST_TEST(!info.failures[1].reason.empty());
    BOOST_TEST(info.failures[2].path == (root.path() / "c/gap.jpg").string());
    BOOST_TEST(drawpoint::dataset_info(ImageFolder{root.path()}, ImageCheck::ends).failures.size() == 2u);
    BOOST_TEST(drawpoint::dataset_info(ImageFolder{root.path()}, ImageCheck::none).failures.size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
