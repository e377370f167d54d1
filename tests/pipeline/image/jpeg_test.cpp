#include <drawpoint/pipeline/image/jpeg.hpp>

#include <drawpoint/pipeline/image/crop.hpp>
#include "pipeline/image/encode.hpp"
#include "pipeline/image/reference.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(jpeg)

namespace {

using namespace drawpoint;
using reference::Rgb;
using test::JpegKind;

const std::vector<std::pair<std::string, JpegKind>> kinds{
    {"4:2:0", {}},
    {"4:2:2", {.luma_v = 1}},
    {"4:4:4", {.luma_h = 1, .luma_v = 1}},
    {"4:4:0", {.luma_h = 1}},
    {"4:1:1", {.luma_h = 4, .luma_v = 1}},
    {"gray", {.components = 1}},
    {"progressive", {.progressive = true}},
    {"progressive gray", {.components = 1, .progressive = true}},
    {"progressive 4:4:4", {.luma_h = 1, .luma_v = 1, .progressive = true}},
    {"never refined", {.quality = 60, .scans = 5}},
    {"restart markers", {.restart_rows = 1}},
    {"quality 25", {.quality = 25}},
    {"CMYK", {.components = 4}},
    {"YCCK", {.components = 4, .ycck = true}},
};

Rgb decode_crop(JpegDecoder& decoder, CropBox box) {
    Rgb part{{box.width, box.height}, std::vector<std::uint8_t>(std::size_t{3} * box.width * box.height)};
    decoder.decode_rgb(box, part.pixels.data());
    return part;
}

// The number of bytes in which two images differ: the window decode must be exact, also at its borders.
std::size_t differing(const Rgb& a, const Rgb& b) {
    BOOST_REQUIRE(a.pixels.size() == b.pixels.size());
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.pixels.size(); ++i)
        count += a.pixels[i] != b.pixels[i];
    return count;
}

}   // namespace

BOOST_AUTO_TEST_CASE(a_crop_at_every_offset_has_the_pixels_of_the_full_decode) {
    JpegDecoder decoder;
    for (const auto& [name, kind] : kinds) {
        const auto file = test::jpeg_file({83, 71}, kind);
        const Rgb full = reference::decode(file);
        decoder.open(file);
        BOOST_REQUIRE((decoder.size() == full.size));
        BOOST_TEST_CONTEXT(name)
        for (std::uint32_t offset = 0; offset < 34; ++offset)
            for (const std::uint32_t side : {1u, 2u, 15u, 37u})
                for (const CropBox box : {CropBox{offset, 33 - offset, side, side}, CropBox{offset, 0, side, 71},
                                          CropBox{0, offset, 83, side}, CropBox{83 - side, 71 - side, side, side}})
                    BOOST_REQUIRE(differing(decode_crop(decoder, box), reference::crop(full, box)) == 0u);
    }
}

BOOST_AUTO_TEST_CASE(images_of_1_to_39_pixels_decode_exactly) {
    JpegDecoder decoder;
    for (const auto& [name, kind] : kinds)
        for (std::uint32_t side = 1; side < 40; ++side)
            for (const ImageSize size : {ImageSize{side, 40 - side}, ImageSize{side, side}}) {
                const auto file = test::jpeg_file(size, kind, side);
                const Rgb full = reference::decode(file);
                decoder.open(file);
                const CropBox inner{size.width / 3, size.height / 4, (size.width + 1) / 2, (size.height + 1) / 2};
                const CropBox corner{size.width - 1, size.height - 1, 1, 1};
                BOOST_TEST_CONTEXT(name << ' ' << size.width << 'x' << size.height) {
                    BOOST_REQUIRE(differing(decode_crop(decoder, {0, 0, size.width, size.height}), full) == 0u);
                    BOOST_REQUIRE(differing(decode_crop(decoder, inner), reference::crop(full, inner)) == 0u);
                    BOOST_REQUIRE(differing(decode_crop(decoder, corner), reference::crop(full, corner)) == 0u);
                }
            }
}

BOOST_AUTO_TEST_CASE(decode_and_resize_is_within_one_level_of_the_reference) {
    JpegDecoder decoder;
    for (const auto& [name, kind] : kinds)
        for (const ImageSize size : {ImageSize{500, 375}, ImageSize{221, 333}, ImageSize{97, 61}}) {
            const auto file = test::jpeg_file(size, kind);
            const Rgb full = reference::decode(file);
            decoder.open(file);
            for (std::uint64_t index = 0; index < 6; ++index) {
                CounterRng random{3, 0, index};
                const CropBox box =
                    index == 0 ? CropBox{0, 0, size.width, size.height} : random_resized_crop(size, {}, random);
                const bool flip = index % 2 == 1;
                const auto filter = index == 5 ? ResizeFilter::bilinear : ResizeFilter::antialias;
                std::vector<float> planar(3 * 96 * 96);
                decoder.decode(box, {96, 96}, flip, filter, {ChannelNormalization::none(), planar.data()});
                Rgb expected = reference::resize(reference::crop(full, box), {96, 96}, filter);
                if (flip)
                    expected = reference::mirror(expected);
                const auto difference = reference::compare(planar, expected);
                BOOST_TEST_CONTEXT(name << ' ' << size.width << 'x' << size.height << " crop " << index) {
                    BOOST_TEST(difference.largest < 1.001);
                    BOOST_TEST(difference.mean <= 0.3);   // for noise; the other order of the passes rounds differently
                }
            }
        }
}

BOOST_AUTO_TEST_CASE(a_step_at_the_border_of_the_crop_does_not_bleed_in_beyond_the_full_decode) {
    const ImageSize size{160, 120};
    for (std::uint32_t border = 30; border < 48; ++border) {
        std::vector<std::uint8_t> pixels;
        for (std::uint32_t y = 0; y < size.height; ++y)
            for (std::uint32_t x = 0; x < size.width; ++x) {
                const bool inside = x >= border && x < border + 64 && y >= border && y < border + 48;
                for (const int level : {inside ? 255 : 0, inside ? 0 : 255, inside ? 10 : 200})
                    pixels.push_back(static_cast<std::uint8_t>(level));
            }
        const auto file = test::encode(pixels, size, {.quality = 95});
        const Rgb full = reference::decode(file);
        JpegDecoder decoder;
        decoder.open(file);
        const CropBox box{border, border, 64, 48};
        BOOST_TEST(differing(decode_crop(decoder, box), reference::crop(full, box)) == 0u);
        std::vector<float> planar(3 * 40 * 40);
        decoder.decode(box, {40, 40}, false, ResizeFilter::antialias, {{}, planar.data()});
        const Rgb expected = reference::resize(reference::crop(full, box), {40, 40}, ResizeFilter::antialias);
        BOOST_TEST(reference::compare(planar, expected).largest < 1.001);
    }
}

BOOST_AUTO_TEST_CASE(a_gray_file_gives_three_equal_channels) {
    const auto file = test::jpeg_file({40, 30}, {.components = 1});
    JpegDecoder decoder;
    decoder.open(file);
    std::vector<float> planar(3 * 20 * 20);
    decoder.decode({3, 4, 30, 20}, {20, 20}, false, ResizeFilter::antialias, {{}, planar.data()});
    BOOST_TEST(std::equal(planar.begin(), planar.begin() + 400, planar.begin() + 400));
    BOOST_TEST(std::equal(planar.begin(), planar.begin() + 400, planar.begin() + 800));
}

BOOST_AUTO_TEST_CASE(bytes_after_the_end_marker_are_allowed) {
    auto file = test::jpeg_file({40, 30});
    const Rgb full = reference::decode(file);
    file.insert(file.end(), 1000, std::byte{0});
    JpegDecoder decoder;
    decoder.open(file);
    BOOST_TEST(differing(decode_crop(decoder, {0, 0, 40, 30}), full) == 0u);
}

BOOST_AUTO_TEST_CASE(a_decoder_can_be_moved_and_used_for_many_files) {
    JpegDecoder first;
    const auto small = test::jpeg_file({30, 30}), large = test::jpeg_file({300, 200});
    first.open(small);
    JpegDecoder second = std::move(first);
    BOOST_TEST(differing(decode_crop(second, {0, 0, 30, 30}), reference::decode(small)) == 0u);
    second.open(large);
    BOOST_TEST(differing(decode_crop(second, {0, 0, 300, 200}), reference::decode(large)) == 0u);
    second.open(small);
    BOOST_TEST(differing(decode_crop(second, {0, 0, 30, 30}), reference::decode(small)) == 0u);
}

BOOST_AUTO_TEST_CASE(a_crop_that_leaves_the_image_is_refused_and_the_file_stays_open) {
    const auto file = test::jpeg_file({30, 20});
    JpegDecoder decoder;
    std::vector<float> planar(3 * 4);
    BOOST_CHECK_THROW(decoder.decode({0, 0, 1, 1}, {2, 2}, false, ResizeFilter::antialias, {{}, planar.data()}),
                      std::exception);
    decoder.open(file);
    BOOST_CHECK_THROW(decoder.decode({1, 0, 30, 20}, {2, 2}, false, ResizeFilter::antialias, {{}, planar.data()}),
                      std::invalid_argument);
    BOOST_CHECK_THROW(decoder.decode({0, 0, 30, 20}, {0, 2}, false, ResizeFilter::antialias, {{}, planar.data()}),
                      std::invalid_argument);
    BOOST_TEST(differing(decode_crop(decoder, {0, 0, 30, 20}), reference::decode(file)) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
