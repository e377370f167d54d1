#include <drawpoint/pipeline/image/crop.hpp>

#include <boost/test/unit_test.hpp>

#include <vector>

BOOST_AUTO_TEST_SUITE(crop)

namespace {

using drawpoint::CounterRng;
using drawpoint::CropBox;
using drawpoint::random_resized_crop;
using drawpoint::RandomCropRanges;

}   // namespace

BOOST_AUTO_TEST_CASE(every_crop_lies_inside_its_image) {
    for (std::uint64_t index = 0; index < 20000; ++index) {
        CounterRng random{1, 0, index};
        const drawpoint::ImageSize image{1 + random.next_u32() % 700, 1 + random.next_u32() % 700};
        const CropBox box = random_resized_crop(image, {}, random);
        BOOST_REQUIRE((box.width >= 1 && box.height >= 1));
        BOOST_REQUIRE((box.x + box.width <= image.width && box.y + box.height <= image.height));
    }
}

BOOST_AUTO_TEST_CASE(area_and_ratio_follow_the_ranges) {
    const drawpoint::ImageSize image{1000, 800};
    double least = 1, most = 0;
    for (std::uint64_t index = 0; index < 20000; ++index) {
        CounterRng random{2, 0, index};
        const CropBox box = random_resized_crop(image, {.scale_min = 0.1, .scale_max = 0.5}, random);
        const double share = static_cast<double>(box.width) * box.height / (1000.0 * 800.0);
        const double ratio = static_cast<double>(box.width) / box.height;
        BOOST_REQUIRE((share > 0.098 && share < 0.502 && ratio > 0.745 && ratio < 1.342));
        least = std::min(least, share);
        most = std::max(most, share);
    }
    BOOST_TEST(least < 0.11);
    BOOST_TEST(most > 0.49);
}

BOOST_AUTO_TEST_CASE(the_draws_are_area_then_ratio_then_row_then_column) {
    const std::vector<double> draws{0.5, 0.5, 0.25, 0.75};   // area share 0.54, ratio 1
    std::size_t next = 0;
    const CropBox box = random_resized_crop({400, 400}, {}, [&] { return draws.at(next++); });
    BOOST_TEST(next == 4u);
    BOOST_TEST(box.width == 294u);   // sqrt(0.54) * 400
    BOOST_TEST(box.height == 294u);
    BOOST_TEST(box.y == 26u);   // a quarter of the 107 positions
    BOOST_TEST(box.x == 80u);
}

BOOST_AUTO_TEST_CASE(after_ten_tries_that_do_not_fit_the_crop_is_the_centre) {
    int draws = 0;
    const auto wide = [&draws] { return ++draws, 0.999999; };
    BOOST_TEST((random_resized_crop({400, 100}, {}, wide) == CropBox{133, 0, 133, 100}));
    BOOST_TEST(draws == 20);
    BOOST_TEST((random_resized_crop({100, 400}, {.scale_min = 1}, [] { return 0.0; }) == CropBox{0, 133, 100, 133}));
    BOOST_TEST((random_resized_crop({400, 400}, {.scale_min = 2, .scale_max = 2}, [] { return 0.5; }) ==
                CropBox{0, 0, 400, 400}));
    BOOST_TEST((random_resized_crop({1, 500}, {}, wide) == CropBox{0, 249, 1, 1}));
}

BOOST_AUTO_TEST_CASE(ranges_that_make_no_sense_are_refused) {
    CounterRng random{1, 0, 0};
    BOOST_CHECK_THROW(random_resized_crop({0, 4}, {}, random), std::invalid_argument);
    BOOST_CHECK_THROW(random_resized_crop({4, 4}, {.scale_min = 0}, random), std::invalid_argument);
    BOOST_CHECK_THROW(random_resized_crop({4, 4}, {.scale_min = 0.5, .scale_max = 0.4}, random), std::invalid_argument);
    BOOST_CHECK_THROW(random_resized_crop({4, 4}, {.ratio_min = 2, .ratio_max = 1}, random), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
