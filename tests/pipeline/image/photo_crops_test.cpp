#include <drawpoint/pipeline/image/photo_crops.hpp>

#include <drawpoint/pipeline/image/dataset_info.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>
#include "pipeline/image/encode.hpp"
#include "pipeline/image/reference.hpp"
#include "support/temporary_folder.hpp"
#include "pipeline/image/jpeg_encoder.hpp"
#include "pipeline/image/photo_split.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <string>
#include <thread>
#include <vector>

BOOST_AUTO_TEST_SUITE(photo_crops)

namespace {

using namespace drawpoint;
using test::TemporaryFolder;

std::map<std::string, std::vector<std::byte>> files_below(const std::filesystem::path& folder) {
    std::map<std::string, std::vector<std::byte>> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.is_regular_file())
            read_file(entry.path().c_str(), files[entry.path().lexically_relative(folder).string()]);
    return files;
}

bool overlap(CropBox a, CropBox b) {
    return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

}   // namespace

BOOST_AUTO_TEST_CASE(a_file_that_cannot_take_its_name_leaves_nothing) {
    const TemporaryFolder folder;
    const auto taken = folder.path() / "taken.jpg";   // by a folder, which no file can replace
    std::filesystem::create_directory(taken);
    BOOST_CHECK_THROW(write_whole_file(taken, std::vector<std::byte>(100)), std::filesystem::filesystem_error);
    BOOST_TEST(std::filesystem::is_empty(taken));
    const auto entries = std::filesystem::directory_iterator(folder.path());
    BOOST_TEST(std::distance(begin(entries), end(entries)) == 1);
}

BOOST_AUTO_TEST_CASE(files_of_others_stay_as_they_are) {
    const TemporaryFolder folder;
    const auto partial = folder.path() / "crop.jpg.partial", other = folder.path() / "crop.jpg.tmp";
    for (const auto& path : {partial, other})
        test::put_bytes(path, "somebody's");
    write_whole_file(folder.path() / "crop.jpg", std::vector<std::byte>(100));
    for (const auto& path : {partial, other}) {
        std::vector<std::byte> bytes;
        BOOST_REQUIRE(std::filesystem::exists(path));
        read_file(path.c_str(), bytes);
        BOOST_TEST(bytes.size() == 10u, path.string());
    }
}

BOOST_AUTO_TEST_CASE(of_many_who_write_one_name_at_the_same_time_one_stays_whole) {
    const TemporaryFolder folder;
    const auto path = folder.path() / "crop.jpg";
    constexpr std::size_t size = 300'000;
    std::atomic<int> failures{0};
    std::vector<std::thread> writers;
    for (int number = 1; number <= 4; ++number)
        writers.emplace_back([&, number] {
            for (int i = 0; i < 25; ++i)
                try {
                    write_whole_file(path, std::vector<std::byte>(size, static_cast<std::byte>(number)));
                } catch (const std::exception&) {
                    ++failures;
                }
        });
    for (std::thread& writer : writers)
        writer.join();
    BOOST_TEST(failures == 0);
    const auto files = files_below(folder.path());
    BOOST_REQUIRE(files.size() == 1u);
    const std::vector<std::byte>& bytes = files.at("crop.jpg");
    BOOST_TEST(bytes.size() == size);
    BOOST_TEST((std::ranges::count(bytes, bytes.front()) == static_cast<std::ptrdiff_t>(size)));
}

BOOST_AUTO_TEST_CASE(the_two_parts_share_no_pixel_and_fill_the_photograph) {
    for (const ImageSize size : {ImageSize{1365, 1074}, ImageSize{4096, 2304}, ImageSize{2056, 3088},
                                 ImageSize{4096, 4096}, ImageSize{1000, 375}, ImageSize{500, 750}})
        for (const bool at_begin : {false, true}) {
            const PhotoSplit split = split_photograph(size, {500, 375}, 0.2, at_begin);
            BOOST_TEST(!overlap(split.training, split.held_out));
            const auto area = [](CropBox box) { return std::uint64_t{box.width} * box.height; };
            BOOST_TEST(area(split.training) + area(split.held_out) == std::uint64_t{size.width} * size.height);
            for (std::uint64_t index = 0; index < 500; ++index) {
                CounterRng random{1, 0, index};
                for (const CropBox part : {split.training, split.held_out}) {
                    const CropBox window = random_window(part, {500, 375}, random);
                    BOOST_REQUIRE((window.width >= 500 && window.height >= 375));
                    BOOST_REQUIRE((window.x >= part.x && window.x + window.width <= part.x + part.width));
                    BOOST_REQUIRE((window.y >= part.y && window.y + window.height <= part.y + part.height));
                }
            }
        }
}

BOOST_AUTO_TEST_CASE(the_band_runs_along_the_longer_side_and_has_its_share) {
    BOOST_TEST((split_photograph({4000, 3000}, {500, 375}, 0.2, false).held_out == CropBox{3200, 0, 800, 3000}));
    BOOST_TEST((split_photograph({4000, 3000}, {500, 375}, 0.2, true).held_out == CropBox{0, 0, 800, 3000}));
    BOOST_TEST((split_photograph({3000, 4000}, {500, 375}, 0.2, false).held_out == CropBox{0, 3200, 3000, 800}));
    BOOST_TEST((split_photograph({4000, 3000}, {500, 375}, 0, false).training == CropBox{0, 0, 4000, 3000}));
    BOOST_CHECK_THROW(split_photograph({999, 749}, {500, 375}, 0.2, false), ImageError);
}

BOOST_AUTO_TEST_CASE(crops_are_labelled_by_photograph_and_those_left_out_are_named) {
    const TemporaryFolder folder;
    folder.write("photos/lake.jpg", test::jpeg_file({300, 200}, {}, 1));
    folder.write("photos/more/hill.JPG", test::jpeg_file({200, 300}, {}, 2));
    folder.write("photos/more/lake.jpeg", test::jpeg_file({250, 250}, {}, 3));
    folder.write("photos/small.jpg", test::jpeg_file({60, 40}, {}, 4));
    folder.write("photos/broken.jpg", std::vector<std::byte>(100));
    folder.write("photos/notes.txt", {});
    const auto summary = cut_photo_crops({folder.path() / "photos", folder.path() / "crops", 8, {50, 40}, 90, 7, 0.2});
    BOOST_TEST(summary.photographs == 3u);
    BOOST_TEST(summary.training_crops == 24u);
    BOOST_TEST(summary.held_out_crops == 6u);
    BOOST_REQUIRE(summary.skipped.size() == 2u);
    BOOST_TEST(summary.skipped[0].path == (folder.path() / "photos/broken.jpg").string());
    BOOST_TEST(summary.skipped[0].reason.find("not a JPEG") == 0u);
    BOOST_TEST(summary.skipped[1].path == (folder.path() / "photos/small.jpg").string());
    BOOST_TEST(summary.skipped[1].reason.find("too small") == 0u);

    for (const auto& [part, per_class] : {std::pair{"train", 8u}, std::pair{"valid", 2u}}) {
        const ImageFolder crops{folder.path() / "crops" / part};
        BOOST_REQUIRE(crops.num_classes() == 3u);
        BOOST_TEST(crops.class_name(0) == "hill");
        BOOST_TEST(crops.class_name(1) == "lake");
        BOOST_TEST(crops.class_name(2) == "lake-2");
        const DatasetInfo info = dataset_info(crops, ImageCheck::ends);
        BOOST_TEST(info.failures.empty());
        BOOST_TEST(info.smallest_class == per_class);
        BOOST_TEST(info.largest_class == per_class);
        BOOST_TEST((info.smallest == ImageSize{50, 40}));
        BOOST_TEST((info.largest == ImageSize{50, 40}));
        BOOST_TEST(info.ignored_files == 0u);
    }
}

BOOST_AUTO_TEST_CASE(equal_options_give_equal_files_and_a_new_seed_gives_others) {
    const TemporaryFolder folder;
    folder.write("photos/lake.jpg", test::jpeg_file({300, 200}));
    PhotoCropOptions options{folder.path() / "photos", folder.path() / "a", 4, {50, 40}};
    cut_photo_crops(options);
    const auto first = files_below(options.out);
    BOOST_TEST(first.size() == 5u);
    cut_photo_crops(options);
    BOOST_TEST((files_below(options.out) == first));
    options.seed = 8;
    cut_photo_crops(options);
    const auto other = files_below(options.out);
    BOOST_TEST(other.size() == 5u);
    BOOST_TEST((other != first));
}

BOOST_AUTO_TEST_CASE(options_that_make_no_sense_are_refused_by_name) {
    const TemporaryFolder folder;
    const PhotoCropOptions good{folder.path(), folder.path().string() + "-out", 4, {50, 40}};
    const auto refusal = [&good](auto change) {
        PhotoCropOptions options = good;
        change(options);
        try {
            cut_photo_crops(options);
        } catch (const std::invalid_argument& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    BOOST_TEST(refusal([](auto& o) { o.per_image = 0; }) == "per_image must be at least 1, got 0");
    BOOST_TEST(refusal([](auto& o) { o.size.width = 0; }).find("size must be") == 0u);
    BOOST_TEST(refusal([](auto& o) { o.quality = 101; }) == "quality must be 1 to 100, got 101");
    BOOST_TEST(refusal([](auto& o) { o.held_out = 0.6; }).find("held_out must be") == 0u);
    BOOST_TEST(refusal([](auto& o) { o.from /= "missing"; }).find("from must be a folder") == 0u);
    BOOST_TEST(refusal([](auto& o) { o.out = o.from / "crops"; }).find("out must not lie in from") == 0u);
}

BOOST_AUTO_TEST_CASE(generated_photos_are_equal_for_equal_seeds_and_differ_from_each_other) {
    const TemporaryFolder folder;
    make_generated_photos(folder.path() / "a", 2, 7);
    make_generated_photos(folder.path() / "b", 2, 7);
    const auto first = files_below(folder.path() / "a");
    BOOST_TEST(first.size() == 2u);
    BOOST_TEST((first == files_below(folder.path() / "b")));
    BOOST_TEST((first.at("generated-00.jpg") != first.at("generated-01.jpg")));
    JpegDecoder decoder;
    decoder.open(first.at("generated-00.jpg"));
    BOOST_TEST((decoder.size() == ImageSize{1600, 1200}));
    BOOST_CHECK_THROW(make_generated_photos(folder.path(), 0, 7), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
