#include <drawpoint/pipeline/stages/image_stages.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "pipeline/stages/counted_new.hpp"
#include "pipeline/stages/jpeg_images.hpp"
#include "pipeline/stages/made_sample.hpp"

BOOST_AUTO_TEST_SUITE(image_stages)

using namespace drawpoint;
using namespace std::chrono_literals;
using test::MadeSample;
using Names = std::vector<std::string>;

namespace {

const test::JpegsInMemory photos{{test::jpeg(97, 61), test::jpeg(200, 150), test::jpeg(33, 120)}};

auto touch() {
    return stage("augment", [](PixelView&) {});
}

std::vector<float> values(const SampleSource& source, MadeSample::Key key) {
    MadeSample sample{source};
    sample.fill(key);
    return sample.floats();
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    BOOST_REQUIRE(a.size() == b.size());
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

template <class Compose>
std::string refusal(Compose compose) {
    try {
        compose();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "composed";
}

}   // namespace

BOOST_AUTO_TEST_CASE(adjacent_image_stages_fuse_into_one_named_after_all_of_them) {
    const auto recipe =
        photos | decode_jpeg | RandomResizedCrop{24, 24} | RandomHorizontalFlip{} | Normalize::imagenet();
    BOOST_TEST(recipe.stages() == (Names{"read", "decode+crop+resize+normalize"}), boost::test_tools::per_element());
    BOOST_TEST((photos | decode_jpeg | CenterCrop{24, 24}).stages() == (Names{"read", "decode+crop+resize"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_users_stage_splits_the_image_stages_where_it_stands) {
    const auto on_image = photos | decode_jpeg | touch() | RandomResizedCrop{24, 24} | Normalize::imagenet();
    BOOST_TEST(on_image.stages() == (Names{"read", "decode", "augment", "crop+resize+normalize"}),
               boost::test_tools::per_element());
    const auto on_crop =
        photos | decode_jpeg | RandomResizedCrop{24, 24} | RandomHorizontalFlip{} | touch() | Normalize::imagenet();
    BOOST_TEST(on_crop.stages() == (Names{"read", "decode+crop+resize", "augment", "normalize"}),
               boost::test_tools::per_element());
    const auto flip_later =
        photos | decode_jpeg | RandomResizedCrop{24, 24} | touch() | RandomHorizontalFlip{} | touch();
    BOOST_TEST(flip_later.stages() == (Names{"read", "decode+crop+resize", "augment", "flip", "augment", "to_float"}),
               boost::test_tools::per_element());
    const auto on_values =
        photos | decode_jpeg | CenterCrop{24, 24} | Normalize::imagenet() | stage("last", [](SampleView&) {});
    BOOST_TEST(on_values.stages() == (Names{"read", "decode+crop+resize+normalize", "last"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_split_recipe_gives_the_pixels_of_the_fused_one) {
    const auto images = photos | decode_jpeg;
    const RandomResizedCrop crop{24, 40};
    const RandomHorizontalFlip flip{};
    const auto fused = images | crop | flip;
    const auto on_image = images | touch() | crop | flip;
    const auto on_crop = images | crop | flip | touch();
    const auto flip_later = images | crop | touch() | flip;
    for (std::uint64_t index = 0; index < photos.size(); ++index)
        for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
            const MadeSample::Key key{.index = index, .seed = 9, .epoch = epoch};
            const auto expected = values(fused, key);
            for (const SampleSource* split : {&on_image, &on_crop, &flip_later})
                BOOST_TEST(largest_difference(expected, values(*split, key)) <= 1.001F / 255);
        }
}

BOOST_AUTO_TEST_CASE(normalising_after_a_users_stage_equals_normalising_in_the_fused_one) {
    const auto cropped = photos | decode_jpeg | CenterCrop{30, 20};
    const auto fused = values(cropped | Normalize::imagenet(), {.index = 1});
    BOOST_TEST(largest_difference(fused, values(cropped | touch() | Normalize::imagenet(), {.index = 1})) < 1e-5F);
}

BOOST_AUTO_TEST_CASE(a_users_stage_sees_the_pixels_at_its_place_and_may_change_them) {
    std::vector<std::uint32_t> seen;
    const auto look = [&seen](PixelView& view) {
        seen.insert(seen.end(), {view.size.width, view.size.height});
        std::fill_n(view.pixels, view.stride * view.size.height, std::uint8_t{51});
    };
    const auto before = photos | decode_jpeg | stage("look", look) | CenterCrop{24, 20};
    const auto after = photos | decode_jpeg | CenterCrop{24, 20} | stage("look", look);
    for (const SampleSource* source :
         {static_cast<const SampleSource*>(&before), static_cast<const SampleSource*>(&after)})
        for (const float value : values(*source, {.index = 1}))
            BOOST_REQUIRE(std::abs(value - 0.2F) < 1e-6F);
    BOOST_TEST(seen == (std::vector<std::uint32_t>{200, 150, 20, 24}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_certain_flip_mirrors_every_row) {
    const auto cropped = photos | decode_jpeg | CenterCrop{8, 10};
    const auto plain = values(cropped, {});
    const auto flipped = values(cropped | RandomHorizontalFlip{1.0}, {});
    for (std::size_t row = 0; row < 3 * 8; ++row)
        for (std::size_t x = 0; x < 10; ++x)
            BOOST_REQUIRE(flipped[row * 10 + x] == plain[row * 10 + 9 - x]);
    BOOST_TEST(largest_difference(plain, flipped) > 0.1F);
}

BOOST_AUTO_TEST_CASE(a_sample_depends_on_seed_epoch_and_index_only) {
    const auto recipe = photos | decode_jpeg | RandomResizedCrop{24, 24} | RandomHorizontalFlip{};
    const MadeSample::Key key{.index = 1, .seed = 2, .epoch = 3};
    MadeSample used{recipe};
    used.fill({.index = 0});
    used.fill({.index = 2});
    used.fill(key);
    BOOST_TEST((used.floats() == values(recipe, key)));
    BOOST_TEST((values(recipe, {1, 3, 3}) != values(recipe, key)));
    BOOST_TEST((values(recipe, {1, 2, 4}) != values(recipe, key)));
}

BOOST_AUTO_TEST_CASE(the_target_is_the_label_and_the_files_bytes_are_counted) {
    const auto recipe = photos | decode_jpeg | CenterCrop{8, 8};
    MadeSample sample{recipe};
    sample.fill({.index = 2});
    BOOST_TEST(sample.target == 12);
    BOOST_TEST(sample.task.bytes_read == photos.files[2].size());
    BOOST_TEST(recipe.path(2) == "image 2");
    BOOST_TEST((recipe.layout() == SampleLayout{ScalarType::float32, 3, {3, 8, 8}}));
}

BOOST_AUTO_TEST_CASE(stages_tile_a_sample_exactly) {
    ManualClock manual;
    const AnyClock clock{manual};
    test::JpegsInMemory data = photos;
    const auto takes = [&manual](std::chrono::nanoseconds time) {
        return [&manual, time](auto&) { manual.advance(time); };
    };
    const auto recipe = data | decode_jpeg | PixelStage{"a", takes(1ns)} | CenterCrop{8, 8} |
                        PixelStage{"b", takes(2ns)} | PixelStage{"c", takes(4ns)} | Normalize::imagenet() |
                        SampleStage{"d", takes(8ns)};
    BOOST_TEST(recipe.stages() == (Names{"read", "decode", "a", "crop+resize", "b", "c", "normalize", "d"}),
               boost::test_tools::per_element());
    MadeSample sample{recipe};
    sample.fill({}, &clock);
    BOOST_TEST(sample.times() == (std::vector<std::int64_t>{0, 0, 1, 0, 2, 4, 0, 8}), boost::test_tools::per_element());
    BOOST_TEST(sample.tiled());
}

BOOST_AUTO_TEST_CASE(as_many_stages_run_as_are_named) {
    const auto images = photos | decode_jpeg;
    const auto cropped = images | CenterCrop{8, 8};
    const RandomHorizontalFlip flip{};
    for (const auto& recipe :
         {cropped, cropped | flip, cropped | flip | touch(), cropped | touch() | flip,
          cropped | touch() | flip | touch(), cropped | touch() | touch() | flip | Normalize::imagenet(),
          images | touch() | CenterCrop{8, 8} | flip | touch()}) {
        MadeSample sample{recipe};
        sample.fill();
        BOOST_TEST(sample.task.stage_count == recipe.stages().size());
    }
}

BOOST_AUTO_TEST_CASE(a_failure_carries_the_stage_it_happened_in) {
    const test::JpegsInMemory broken{{std::vector<std::byte>(100)}};
    const auto recipe = broken | decode_jpeg | CenterCrop{8, 8} | Normalize::imagenet();
    MadeSample sample{recipe};
    BOOST_CHECK_THROW(sample.fill(), ImageError);
    BOOST_TEST(sample.task.stage_count == 2u);

    struct Missing {
        [[nodiscard]] std::size_t size() const { return 1; }
        [[nodiscard]] std::size_t label(std::size_t) const { return 0; }
        [[nodiscard]] std::string path(std::size_t) const { return "/nowhere/a.jpg"; }
    };
    const auto missing = Missing{} | decode_jpeg | CenterCrop{8, 8};
    MadeSample other{missing};
    BOOST_CHECK_THROW(other.fill(), std::filesystem::filesystem_error);
    BOOST_TEST(other.task.stage_count == 1u);
}

BOOST_AUTO_TEST_CASE(levels_are_255_times_the_floats_however_the_recipe_is_split) {
    const auto images = photos | decode_jpeg;
    const RandomResizedCrop crop{24, 40};
    const RandomHorizontalFlip flip{};
    const auto kept = images | cached(std::uint64_t{1} << 20);
    for (const ImageRecipe& floats :
         {images | crop | flip, images | touch() | crop | flip, images | crop | flip | touch(),
          images | crop | touch() | flip, kept | crop | flip}) {
        const ImageRecipe levels = floats | to_uint8;
        BOOST_TEST((levels.layout() == SampleLayout{ScalarType::uint8, 3, {3, 24, 40}}));
        for (std::uint64_t index = 0; index < photos.size(); ++index) {
            const MadeSample::Key key{.index = index, .seed = 9, .epoch = 1};
            const std::vector<float> expected = values(floats, key);
            MadeSample made{levels};
            made.fill(key);
            BOOST_TEST(made.task.stage_count == levels.stages().size());
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < expected.size(); ++i)
                wrong += std::to_integer<long>(made.task.data[i]) != std::lround(expected[i] * 255);
            BOOST_TEST(wrong == 0u);
            BOOST_TEST(made.task.data.size() == expected.size());
        }
    }
    BOOST_TEST((images | crop | flip | to_uint8).stages() == (Names{"read", "decode+crop+resize"}),
               boost::test_tools::per_element());
    BOOST_TEST((images | crop | touch() | to_uint8).stages() ==
                   (Names{"read", "decode+crop+resize", "augment", "to_planar"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(orders_and_values_that_make_no_sense_are_refused_by_name) {
    const auto cropped = photos | decode_jpeg | CenterCrop{8, 8};
    BOOST_TEST(refusal([&] { (void)(cropped | to_uint8 | Normalize{}); }) ==
               "Normalize: it cannot stand behind to_uint8");
    BOOST_TEST(refusal([&] { (void)(cropped | Normalize{} | to_uint8); }) ==
               "to_uint8: it stands once in a recipe, and cannot stand behind Normalize");
    BOOST_TEST(refusal([&] { (void)(cropped | to_uint8 | touch()); }) ==
               "stage augment: it takes pixels, so it stands before to_uint8");
    BOOST_TEST(refusal([&] { (void)(cropped | Normalize{} | Normalize{}); }) ==
               "Normalize: it stands once in a recipe");
    BOOST_TEST(refusal([&] { (void)(cropped | Normalize{} | touch()); }) ==
               "stage augment: it takes pixels, so it stands before Normalize");
    BOOST_TEST(refusal([&] { (void)(cropped | Normalize{} | RandomHorizontalFlip{}); }) ==
               "RandomHorizontalFlip: it stands once in a recipe, before Normalize");
    BOOST_TEST(refusal([&] { (void)(cropped | RandomHorizontalFlip{1.5}); }) ==
               "RandomHorizontalFlip: probability must be 0 to 1, got 1.5");
    BOOST_TEST(refusal([] { (void)(photos | decode_jpeg | RandomResizedCrop{0, 8}); }) ==
               "RandomResizedCrop: height and width must be 1 to 65500, got 0");
    BOOST_TEST(refusal([] { (void)(photos | decode_jpeg | CenterCrop{.height = 8, .width = 8, .share = 0}); }) ==
               "CenterCrop: share must be above 0 and at most 1, got 0");
    BOOST_TEST(refusal([] { (void)(photos | decode_jpeg | RandomResizedCrop{8, 8, {.scale_min = 2}}); }) ==
               "RandomResizedCrop: scale must be 0 < min <= max, got 2 and 1");
    BOOST_TEST(refusal([&] { (void)(cropped | Normalize{ChannelNormalization{{}, {1, 0, 1}}}); }) ==
               "Normalize: standard_deviation must be above 0, got 0");
    BOOST_TEST(refusal([&] {
                   auto recipe = cropped;
                   for (int i = 0; i < 6; ++i)
                       recipe = recipe | touch();
               }) == "stage to_float: a recipe has at most 8 timed stages");
}

BOOST_AUTO_TEST_CASE(a_center_crop_is_what_resize_256_and_center_crop_224_leave) {
    BOOST_TEST((center_crop({500, 375}, {224, 224}) == CropBox{86, 23, 328, 328}));
    BOOST_TEST((center_crop({375, 500}, {224, 224}) == CropBox{23, 86, 328, 328}));
    BOOST_TEST((center_crop({100, 100}, {50, 100}) == CropBox{6, 28, 88, 44}));
    BOOST_TEST((center_crop({1, 1}, {224, 224}) == CropBox{0, 0, 1, 1}));
    BOOST_TEST((center_crop({640, 480}, {.height = 3, .width = 4, .share = 1}) == CropBox{0, 0, 640, 480}));
}

BOOST_AUTO_TEST_CASE(a_recipe_in_steady_state_allocates_nothing) {
    const auto images = photos | decode_jpeg;
    const auto fused = images | RandomResizedCrop{24, 24} | RandomHorizontalFlip{} | Normalize::imagenet();
    const auto split = images | touch() | RandomResizedCrop{24, 24} | touch() | RandomHorizontalFlip{} |
                       Normalize::imagenet() | stage("last", [](SampleView&) {});
    for (const SampleSource* source :
         {static_cast<const SampleSource*>(&fused), static_cast<const SampleSource*>(&split)}) {
        MadeSample sample{*source};
        const AnyClock clock{SteadyClock{}};
        const auto epochs = [&](std::uint64_t from, std::uint64_t to) {
            for (std::uint64_t epoch = from; epoch < to; ++epoch)
                for (std::uint64_t index = 0; index < photos.size(); ++index)
                    sample.fill({.index = index, .epoch = epoch}, &clock);
        };
        epochs(0, 50);
        const std::size_t before = calls_of_operator_new();
        epochs(0, 50);
        BOOST_TEST(calls_of_operator_new() - before == 0u);
    }
}

BOOST_AUTO_TEST_CASE(bytes_read_ahead_are_used_in_place_of_a_read) {
    const auto recipe = photos | decode_jpeg | CenterCrop{8, 8};
    const auto expected = values(recipe, {.index = 1});
    BOOST_TEST_REQUIRE(recipe.reads() != nullptr);
    std::vector<std::byte> contents;
    recipe.reads()->read(1, contents);
    BOOST_TEST((contents == photos.files[1]));
    test::JpegsInMemory gone = photos;
    gone.files[1].clear();   // would be read by fill()
    const auto from_contents = gone | decode_jpeg | CenterCrop{8, 8} | stage("last", [](SampleView&) {});
    MadeSample sample{from_contents};
    sample.task = {};
    sample.task.index = 1;
    sample.task.data = sample.data;
    sample.task.target = &sample.target;
    sample.task.contents = &contents;
    from_contents.fill(sample.task, *from_contents.make_scratch());
    BOOST_TEST((sample.floats() == expected));
    BOOST_TEST(sample.task.bytes_read == contents.size());
    BOOST_TEST(sample.task.stage_count == 3u);
    BOOST_TEST(sample.target == 11);
    BOOST_TEST(from_contents.reads()->wants(1));
}

BOOST_AUTO_TEST_CASE(reads_say_where_a_file_lies_when_reading_it_is_all_there_is_to_do) {
    struct AtPaths {
        std::vector<std::string> paths{"a/1.jpg", "a/2.jpg"};
        [[nodiscard]] std::size_t size() const { return paths.size(); }
        [[nodiscard]] int label(std::size_t) const { return 0; }
        [[nodiscard]] const std::string& path(std::size_t index) const { return paths[index]; }
    };
    struct InPack : AtPaths {
        void read(std::size_t, std::vector<std::byte>& contents) const { contents.clear(); }
        [[nodiscard]] FileRange location(std::size_t index) const {
            return {.path = "a.pack", .offset = 100 * index, .bytes = 100};
        }
    };
    struct Unpacked : AtPaths {
        void read(std::size_t, std::vector<std::byte>& contents) const { contents.clear(); }
    };
    const auto located = [](const auto& data) {
        const auto recipe = data | decode_image | CenterCrop{8, 8};
        const auto at = recipe.reads()->location(1);
        return at ? std::string{at->path} + " " + std::to_string(at->offset) + " " +
                        (at->bytes == FileRange::whole ? "whole" : std::to_string(at->bytes))
                  : "nowhere";
    };
    BOOST_TEST(located(AtPaths{}) == "a/2.jpg 0 whole");
    BOOST_TEST(located(InPack{}) == "a.pack 100 100");
    BOOST_TEST(located(Unpacked{}) == "nowhere");   // only its read() knows where
    BOOST_TEST(located(photos) == "nowhere");
}

BOOST_AUTO_TEST_CASE(decode_image_takes_jpeg_and_other_formats_and_decode_jpeg_only_jpeg) {
    // 2 × 1 pixels: red, and (0, 51, 255).
    constexpr std::uint8_t png[] = {
        0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00,
        0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x7B, 0x40, 0xE8, 0xDD, 0x00, 0x00, 0x00,
        0x0F, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9C, 0x63, 0xF8, 0xCF, 0xC0, 0xC0, 0x60, 0xFC, 0x1F, 0x00, 0x07, 0x66,
        0x02, 0x32, 0x91, 0x47, 0x66, 0x74, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};
    test::JpegsInMemory mixed = photos;
    const auto* const bytes = reinterpret_cast<const std::byte*>(png);
    mixed.files.emplace_back(bytes, bytes + sizeof png);
    const CenterCrop crop{.height = 1, .width = 2, .share = 1};
    for (const JpegBackend backend : {JpegBackend::automatic, JpegBackend::library, JpegBackend::own})
        BOOST_TEST((values(mixed | DecodeImage{backend} | crop, {.index = 1}) ==
                    values(mixed | DecodeJpeg{backend} | crop, {.index = 1})));
    BOOST_TEST(largest_difference(values(mixed | decode_image | crop, {.index = 3}), {1, 0, 0, 0.2F, 0, 1}) < 1e-6F);
    BOOST_CHECK_THROW(values(mixed | decode_jpeg | crop, {.index = 3}), ImageError);
}

BOOST_AUTO_TEST_CASE(a_folder_of_photographs_is_a_data_set_of_files) {
    static_assert(EncodedDataset<ImageFolder> && EncodedDataset<test::JpegsInMemory>);
    static_assert(!EncodedDataset<std::vector<int>>);
    BOOST_TEST((photos | decode_jpeg | CenterCrop{8, 8}).size() == photos.size());
}

BOOST_AUTO_TEST_SUITE_END()
