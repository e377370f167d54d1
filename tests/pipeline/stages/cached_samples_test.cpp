#include <drawpoint/pipeline/stages/cached.hpp>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/stages/tensor_rows.hpp>

#include "support/temporary_folder.hpp"
#include "pipeline/stages/counted_new.hpp"
#include "pipeline/stages/jpeg_images.hpp"
#include "pipeline/stages/made_sample.hpp"

BOOST_AUTO_TEST_SUITE(cached_samples)

using namespace drawpoint;
using test::MadeSample;
using Names = std::vector<std::string>;

namespace {

/// Files in memory; counts their reads.
struct CountedPhotos {
    std::vector<std::vector<std::byte>> files{test::jpeg(97, 61), test::jpeg(200, 150), test::jpeg(33, 120)};
    std::shared_ptr<std::atomic<int>> read_count = std::make_shared<std::atomic<int>>(0);
    [[nodiscard]] std::size_t size() const noexcept { return files.size(); }
    [[nodiscard]] std::size_t label(std::size_t index) const noexcept { return 10 + index; }
    [[nodiscard]] std::string path(std::size_t index) const { return "image " + std::to_string(index); }
    void read(std::size_t index, std::vector<std::byte>& contents) const {
        ++*read_count;
        contents.assign(files[index].begin(), files[index].end());
    }
};

constexpr RandomResizedCrop crop{24, 40};
constexpr std::uint64_t one_image = 8192 + 200 * 150 * 3;   // the largest of these: room for it and not much else

std::vector<float> values(const SampleSource& source, MadeSample::Key key) {
    MadeSample sample{source};
    sample.fill(key);
    return sample.floats();
}

template <class F>
std::string refusal(F f) {
    try {
        f();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "accepted";
}

/// Rows 0, 1, … of two floats; counts how often one is made.
struct Rows {
    std::shared_ptr<std::atomic<int>> made = std::make_shared<std::atomic<int>>(0);
    std::vector<float> numbers{0, 1, 2, 3, 4, 5, 6, 7};
    std::vector<std::int64_t> targets{9, 8, 7, 6};

    [[nodiscard]] auto source() const {
        return TensorRows{std::as_bytes(std::span{numbers}), {ScalarType::float32, 1, {2}}, targets} |
               stage("double", [made = made](SampleView& view) {
                   ++*made;
                   for (float& value : view.floats())
                       value *= 2;
               }).deterministic();
    }
};

}   // namespace

BOOST_AUTO_TEST_CASE(cached_images_are_read_and_decoded_once_and_their_crops_stay_random) {
    const CountedPhotos photos;
    const auto recipe = photos | decode_jpeg | cached(1_MiB) | crop | RandomHorizontalFlip{} | Normalize::imagenet();
    BOOST_TEST(recipe.stages() == (Names{"read", "decode", "crop+resize+normalize"}), boost::test_tools::per_element());
    std::vector<std::vector<float>> of_epoch;
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch)
        for (std::uint64_t index = 0; index < photos.size(); ++index) {
            MadeSample sample{recipe};
            sample.fill({.index = index, .epoch = epoch});
            BOOST_TEST(sample.target == static_cast<std::int64_t>(10 + index));
            BOOST_TEST(sample.task.bytes_read == (epoch == 0 ? photos.files[index].size() : 0));
            BOOST_TEST(sample.task.stage_count == 3u);
            if (index == 1)
                of_epoch.push_back(sample.floats());
        }
    BOOST_TEST(*photos.read_count == 3);
    BOOST_TEST((of_epoch[0] != of_epoch[1] && of_epoch[1] != of_epoch[2]));
    const CacheCounters counters = recipe.cache()->counters();
    BOOST_TEST(counters.misses == 3u);
    BOOST_TEST(counters.hits == 9u);
    BOOST_TEST(counters.samples == 3u);
}

BOOST_AUTO_TEST_CASE(a_sample_is_the_same_from_the_cache_without_room_in_it_and_without_one) {
    const CountedPhotos photos;
    const auto images = photos | decode_jpeg;
    const auto touch = stage("touch", [](PixelView& view) { view.pixels[0] ^= 1; });
    const auto none = images | crop | RandomHorizontalFlip{};
    const auto roomy = images | cached(1_MiB) | crop | RandomHorizontalFlip{};
    const auto tight = images | cached(one_image) | crop | RandomHorizontalFlip{};
    const auto touched = images | cached(1_MiB) | touch | crop;
    const auto touched_tight = images | cached(128) | touch | crop;
    for (std::uint64_t epoch = 0; epoch < 6; ++epoch)
        for (const std::uint64_t index : {1u, 0u, 2u}) {
            const MadeSample::Key key{.index = index, .seed = 3, .epoch = epoch};
            const auto expected = values(roomy, key);
            BOOST_TEST((values(tight, key) == expected));
            BOOST_TEST((values(touched, key) == values(touched_tight, key)));
            BOOST_TEST((values(none, key) == expected));
        }
    BOOST_TEST(tight.cache()->counters().samples < 3u);
    BOOST_TEST(tight.cache()->counters().hits == 5 * tight.cache()->counters().samples);
    BOOST_TEST(touched_tight.cache()->counters().samples == 0u);
    BOOST_TEST(none.cache() == nullptr);
}

BOOST_AUTO_TEST_CASE(a_stage_before_the_cache_runs_once_an_image_and_one_behind_it_every_time) {
    const CountedPhotos photos;
    std::atomic<int> before = 0, behind = 0;
    std::vector<std::uint64_t> epochs;
    const auto recipe = photos | decode_jpeg |
                        stage("white",
                              [&](PixelView& view) {
                                  ++before;
                                  epochs.push_back(view.epoch);
                                  std::memset(view.pixels, 255, view.stride * view.size.height);
                              })
                            .deterministic() |
                        cached(1_MiB) |
                        stage("black",
                              [&](PixelView& view) {
                                  ++behind;
                                  BOOST_REQUIRE(view.pixels[5] == 255);   // what follows the cache changes a copy
                                  std::memset(view.pixels, 0, view.stride * view.size.height);
                              }) |
                        CenterCrop{8, 8};
    BOOST_TEST(recipe.stages() == (Names{"read", "decode", "white", "black", "crop+resize"}),
               boost::test_tools::per_element());
    for (std::uint64_t epoch = 3; epoch < 6; ++epoch)
        for (const float value : values(recipe, {.index = 1, .epoch = epoch}))
            BOOST_REQUIRE(value == 0);
    BOOST_TEST(before == 1);
    BOOST_TEST(behind == 3);
    BOOST_TEST(epochs == std::vector<std::uint64_t>{0}, boost::test_tools::per_element());   // not the current epoch
}

BOOST_AUTO_TEST_CASE(a_hit_spends_no_time_in_the_stages_before_the_cache) {
    ManualClock manual;
    const AnyClock clock{manual};
    const auto takes = [&manual](int ns) {
        return [&manual, ns](auto&) { manual.advance(std::chrono::nanoseconds{ns}); };
    };
    const Rows rows;
    const auto finished = rows.source() | SampleStage{"slow", takes(7)}.deterministic() | cached(4096);
    const auto images = CountedPhotos{} | decode_jpeg | PixelStage{"slow", takes(7)}.deterministic() | cached(1_MiB) |
                        PixelStage{"quick", takes(2)} | CenterCrop{8, 8};
    BOOST_TEST(finished.stages() == (Names{"copy", "double", "slow", "cache"}), boost::test_tools::per_element());
    using Times = std::vector<std::int64_t>;
    for (const bool hit : {false, true}) {
        MadeSample sample{finished}, image{images};
        sample.fill({}, &clock);
        image.fill({}, &clock);
        BOOST_TEST(sample.times() == (hit ? Times{0, 0, 0, 0} : Times{0, 0, 7, 0}), boost::test_tools::per_element());
        BOOST_TEST(image.times() == (hit ? Times{0, 0, 0, 2, 0} : Times{0, 0, 7, 2, 0}),
                   boost::test_tools::per_element());
        BOOST_TEST((sample.tiled() && image.tiled()));
    }
}

BOOST_AUTO_TEST_CASE(finished_samples_are_made_once_and_given_with_their_targets) {
    const Rows rows;
    const auto source = rows.source() | cached(4096);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
        for (std::uint64_t index = 0; index < 4; ++index) {
            MadeSample sample{source};
            sample.fill({.index = index, .seed = epoch, .epoch = epoch});
            BOOST_TEST(sample.floats() ==
                           (std::vector<float>{4.0F * static_cast<float>(index), 4.0F * static_cast<float>(index) + 2}),
                       boost::test_tools::per_element());
            BOOST_TEST(sample.target == 9 - static_cast<std::int64_t>(index));
        }
    BOOST_TEST(*rows.made == 4);
    BOOST_TEST(source.cache()->counters().hits == 8u);
    BOOST_TEST(source.random_part().empty());
}

BOOST_AUTO_TEST_CASE(what_is_random_is_refused_by_name_and_never_kept) {
    const CountedPhotos photos;
    const auto centred = photos | decode_jpeg | CenterCrop{8, 8};
    const auto touch = stage("augment", [](PixelView&) {});
    const std::string before =
        "cached: it keeps one outcome for all epochs, so nothing before it may be random; found ";
    const std::string stage_part = "stage augment (if it is not random, say so: stage(…).deterministic())";
    BOOST_TEST(refusal([&] { (void)(photos | decode_jpeg | crop | cached(1_MiB)); }) ==
               before + "RandomResizedCrop (cached(bytes) can stand before it)");
    BOOST_TEST(refusal([&] { (void)(centred | RandomHorizontalFlip{} | cached(1_MiB)); }) ==
               before + "RandomHorizontalFlip");
    BOOST_TEST(refusal([&] { (void)(centred | touch | cached(1_MiB)); }) == before + stage_part);
    BOOST_TEST(refusal([&] { (void)(photos | decode_jpeg | touch | cached(1_MiB)); }) == before + stage_part);
    BOOST_TEST(refusal([&] {
                   (void)(photos | decode_jpeg | cached(1_MiB) | touch | CenterCrop{8, 8} | cached(1_MiB));
               }) == before + stage_part);
    BOOST_TEST(refusal([&] { (void)(centred | stage("augment", [](SampleView&) {}) | cached(1_MiB)); }) ==
               before + stage_part);
    BOOST_TEST(refusal([&] { (void)(photos | decode_jpeg | cached(1_MiB) | cached(1_MiB)); }) ==
               "cached: it stands once in a recipe");
    BOOST_TEST(refusal([&] { (void)(centred | Normalize::imagenet() | cached(1_MiB)); }) == "accepted");
    BOOST_TEST(refusal([&] { (void)(centred | touch.deterministic() | cached(1_MiB)); }) == "accepted");

    struct Unknown final : SampleSource {
        std::size_t size() const noexcept override { return 1; }
        SampleLayout layout() const noexcept override { return {}; }
        std::vector<std::string> stages() const override { return {"make"}; }
        std::string path(std::uint64_t) const override { return {}; }
        std::unique_ptr<WorkerScratch> make_scratch() const override { return nullptr; }
        void fill(SampleTask&, WorkerScratch&) const override {}
    };
    BOOST_TEST(refusal([] { (void)(Unknown{} | cached(1_MiB)); }) ==
               before + "a source that does not override random_part()");
}

BOOST_AUTO_TEST_CASE(a_stage_called_deterministic_is_made_so) {
    std::vector<std::uint32_t> drawn;
    const float number = 0;
    const auto draws = stage("draw", [&](SampleView& view) { drawn.push_back(view.random.next_u32()); });
    const TensorRows row{std::as_bytes(std::span{&number, 1}), {}};
    for (const auto& source : {row | draws.deterministic(), row | draws})
        for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
            values(source, {.seed = epoch, .epoch = epoch});
    BOOST_TEST(drawn[0] == drawn[1]);
    BOOST_TEST(drawn[2] != drawn[3]);
}

BOOST_AUTO_TEST_CASE(a_loader_reads_ahead_only_what_the_cache_does_not_hold) {
    const CountedPhotos photos;
    const auto recipe = photos | decode_jpeg | cached(1_MiB) | crop;
    const auto finished = photos | decode_jpeg | CenterCrop{8, 8} | cached(1_MiB);
    for (const SampleSource* source :
         {static_cast<const SampleSource*>(&recipe), static_cast<const SampleSource*>(&finished)}) {
        BOOST_TEST_REQUIRE(source->reads() != nullptr);
        BOOST_TEST(source->reads()->wants(1));
        BOOST_TEST(!source->reads()->location(1));
        std::vector<std::byte> contents;
        source->reads()->read(1, contents);
        BOOST_TEST((contents == photos.files[1]));
        values(*source, {.index = 1});
        BOOST_TEST(!source->reads()->wants(1));
        BOOST_TEST(source->reads()->wants(0));
    }
    BOOST_TEST((Rows{}.source() | cached(4096)).reads() == nullptr);
}

BOOST_AUTO_TEST_CASE(an_image_that_cannot_be_decoded_fails_every_time_and_takes_no_more_room) {
    CountedPhotos photos;
    photos.files[0].resize(photos.files[0].size() / 2);
    const auto recipe = photos | decode_jpeg | cached(1_MiB) | crop;
    std::uint64_t bytes = 0;
    for (int round = 0; round < 3; ++round) {
        MadeSample sample{recipe};
        BOOST_CHECK_THROW(sample.fill(), ImageError);
        BOOST_TEST(sample.task.stage_count == 2u);
        BOOST_TEST((round == 0 || recipe.cache()->counters().bytes == bytes));
        bytes = recipe.cache()->counters().bytes;
    }
    BOOST_TEST(recipe.cache()->counters().samples == 0u);
}

BOOST_AUTO_TEST_CASE(a_cache_file_lasts_as_long_as_files_recipe_and_tag_do) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    folder.write("photos/a/1.jpg", test::jpeg(60, 40));
    folder.write("photos/b/2.jpg", test::jpeg(40, 60));
    using Found = std::pair<std::uint64_t, std::uint64_t>;   // numbers of images and of finished samples in the files
    const auto found = [&](std::uint8_t shade, double share, const char* tag) {
        const ImageFolder photos{folder.path() / "photos"};
        const auto paint = stage("paint", [shade](PixelView& view) { view.pixels[0] = shade; }).deterministic();
        const auto images = photos | decode_jpeg | paint | cached(1_MiB, file, tag) | crop;
        const auto finished = photos | decode_jpeg | CenterCrop{8, 8, share} | cached(1_MiB, file.string() + "2", tag);
        const Found before{images.cache()->counters().samples, finished.cache()->counters().samples};
        for (std::uint64_t index = 0; index < 2; ++index) {
            values(images, {.index = index});
            values(finished, {.index = index});
        }
        return before;
    };
    BOOST_TEST((found(7, 1, "") == Found{0, 0}));
    BOOST_TEST((found(7, 1, "") == Found{2, 2}));
    BOOST_TEST((found(8, 1, "") == Found{0, 2}));     // another stage before the only cache
    BOOST_TEST((found(8, 0.5, "") == Found{2, 0}));   // another crop before the second cache
    BOOST_TEST((found(8, 0.5, "new") == Found{0, 0}));
    folder.write("photos/a/1.jpg", test::jpeg(61, 40));
    BOOST_TEST((found(8, 0.5, "new") == Found{0, 0}));
    std::filesystem::last_write_time(folder.path() / "photos/b/2.jpg", std::filesystem::file_time_type{});
    BOOST_TEST((found(8, 0.5, "new") == Found{0, 0}));
    BOOST_TEST((found(8, 0.5, "new") == Found{2, 2}));
}

BOOST_AUTO_TEST_CASE(a_cache_file_for_samples_from_no_files_takes_a_tag) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    const Rows rows;
    BOOST_TEST(refusal([&] { (void)(rows.source() | cached(4096, file)); }) ==
               "cached: " + file.string() +
                   ": not all samples come from files whose age could be checked, so say what they are with a tag, and "
                   "change it when they change: cached(bytes, file, tag)");
    {
        const auto source = rows.source() | cached(4096, file, "numbers 1");
        values(source, {.index = 2});
    }
    const auto source = rows.source() | cached(4096, file, "numbers 1");
    BOOST_TEST(source.cache()->counters().samples == 1u);
    BOOST_TEST(values(source, {.index = 2}) == (std::vector<float>{8, 10}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_cache_in_steady_state_allocates_nothing) {
    const CountedPhotos photos;
    const auto images = photos | decode_jpeg | cached(1_MiB) | crop;
    const auto tight = photos | decode_jpeg | cached(one_image) | crop;
    const auto finished = photos | decode_jpeg | CenterCrop{8, 8} | cached(1_MiB);
    const AnyClock clock{SteadyClock{}};
    for (const SampleSource* source :
         {static_cast<const SampleSource*>(&images), static_cast<const SampleSource*>(&tight),
          static_cast<const SampleSource*>(&finished)}) {
        MadeSample sample{*source};
        const auto epochs = [&](std::uint64_t count) {
            for (std::uint64_t epoch = 0; epoch < count; ++epoch)
                for (std::uint64_t index = 0; index < photos.size(); ++index)
                    sample.fill({.index = index, .epoch = epoch}, &clock);
        };
        epochs(50);
        const std::size_t before = calls_of_operator_new();
        epochs(50);
        BOOST_TEST(calls_of_operator_new() - before == 0u);
    }
}

BOOST_AUTO_TEST_SUITE_END()
