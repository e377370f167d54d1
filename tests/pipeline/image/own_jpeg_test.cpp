#include "pipeline/image/encode.hpp"
#include "pipeline/image/own_jpeg_files.hpp"
#include "pipeline/image/own_jpeg_law.hpp"
#include "pipeline/image/own_jpeg/own_jpeg.hpp"

#include <boost/test/unit_test.hpp>

#include <utility>

BOOST_AUTO_TEST_SUITE(own_jpeg)

using namespace drawpoint;
using namespace drawpoint::test;
using Verdict = OwnJpegLaw::Verdict;

namespace {

CropBox all_of(ImageSize size) { return {0, 0, size.width, size.height}; }

void require_equal(OwnJpegLaw& law, std::span<const std::byte> file, CropBox crop, const std::string& what) {
    const Verdict verdict = law.check(file, crop);
    BOOST_REQUIRE_MESSAGE(verdict == Verdict::equal,
                          what << ": verdict " << static_cast<int>(verdict) << ' ' << law.fault());
}

}   // namespace

BOOST_AUTO_TEST_CASE(planes_are_the_librarys_at_every_quality) {
    OwnJpegLaw law;
    for (int quality = 1; quality <= 100; ++quality)
        for (const double noise : {0.0, 0.4}) {
            const ImageSize size{53, 47};
            require_equal(law, own_jpeg_file(size, {.quality = quality, .noise = noise}, 1), all_of(size),
                          "quality " + std::to_string(quality));
        }
}

BOOST_AUTO_TEST_CASE(planes_are_the_librarys_for_every_crop_offset) {
    OwnJpegLaw law;
    for (const auto& [across, down] : {std::pair{2, 2}, {2, 1}, {1, 1}}) {
        const auto file = own_jpeg_file({70, 66}, {.across = across, .down = down}, 2);
        for (std::uint32_t y = 0; y <= 17; ++y)
            for (std::uint32_t x = 0; x <= 17; ++x)
                for (const std::uint32_t side : {1u, 15u, 33u})
                    require_equal(law, file, {x, y, side, side + 1},
                                  std::to_string(x) + ',' + std::to_string(y) + ' ' + std::to_string(side));
    }
}

BOOST_AUTO_TEST_CASE(planes_are_the_librarys_for_every_size_up_to_three_blocks_of_colour) {
    OwnJpegLaw law;
    for (std::uint32_t width = 1; width <= 49; width += width < 20 ? 1 : 3)
        for (std::uint32_t height = 1; height <= 49; height += height < 20 ? 1 : 5)
            require_equal(law, own_jpeg_file({width, height}, {.quality = 80}, width * 64 + height),
                          all_of({width, height}), std::to_string(width) + 'x' + std::to_string(height));
}

BOOST_AUTO_TEST_CASE(planes_are_the_librarys_with_any_sampling_code_and_restart_interval) {
    OwnJpegLaw law;
    const ImageSize size{61, 45};
    for (const auto& [components, across, down] : {std::tuple{3, 2, 2}, {3, 2, 1}, {3, 1, 1}, {1, 1, 1}})
        for (const Codes codes : {Codes::standard, Codes::optimised, Codes::flat, Codes::longest, Codes::padded})
            for (const unsigned restart : {0u, 1u, 3u, 4u, 17u})
                for (const int quality : {5, 60, 97, 100}) {
                    const OwnJpegKind kind{components, across, down, quality, codes, restart, 0.5};
                    const auto file = own_jpeg_file(size, kind, 3);
                    const std::string what = std::to_string(components) + " components, " + std::to_string(across) +
                                             'x' + std::to_string(down) + ", codes " +
                                             std::to_string(static_cast<int>(codes)) + ", restart " +
                                             std::to_string(restart) + ", quality " + std::to_string(quality);
                    require_equal(law, file, all_of(size), what);
                    require_equal(law, file, {20, 21, 7, 9}, what + ", inside");
                }
}

BOOST_AUTO_TEST_CASE(one_decoder_takes_files_with_changing_tables_and_many_crops_of_one_file) {
    const auto first = own_jpeg_file({64, 48}, {.codes = Codes::optimised}, 4);
    const auto second = own_jpeg_file({80, 80}, {.codes = Codes::flat, .restart_interval = 2}, 5);
    OwnJpegLaw law;
    for (int turn = 0; turn < 3; ++turn) {
        require_equal(law, first, {1, 2, 30, 30}, "first");
        require_equal(law, second, {17, 33, 40, 40}, "second");
    }
    OwnJpegDecoder decoder;
    YccPlanes planes;
    for (const auto* file : {&first, &second}) {
        BOOST_REQUIRE(decoder.open(*file));
        for (std::uint32_t x = 0; x < 20; ++x)
            BOOST_TEST(decoder.decode_planes({x, x, 20, 20}, planes));
    }
    OwnJpegDecoder moved = std::move(decoder);
    BOOST_TEST(moved.decode_planes({0, 0, 80, 80}, planes));
}

BOOST_AUTO_TEST_CASE(the_scan_is_what_the_library_has_not_read_after_the_header) {
    OwnJpegDecoder decoder;
    const auto file = own_jpeg_file({40, 40}, {}, 6);
    BOOST_TEST(decoder.scan().empty());
    BOOST_REQUIRE(decoder.open(file));
    const auto scan = decoder.scan();
    BOOST_REQUIRE(scan.size() > 20u);
    BOOST_TEST((scan.data() + scan.size() == file.data() + file.size()));
    const std::byte* band = scan.data() - 3;   // at the end of the scan header: 0 … 63, 0
    BOOST_TEST((band[0] == std::byte{0} && band[1] == std::byte{63} && band[2] == std::byte{0}));
}

BOOST_AUTO_TEST_CASE(what_is_unusual_is_left_to_the_library) {
    OwnJpegDecoder decoder;
    for (const JpegKind& kind :
         {JpegKind{.progressive = true}, JpegKind{.components = 4}, JpegKind{.components = 4, .ycck = true},
          JpegKind{.arithmetic = true}, JpegKind{.scans = 5}, JpegKind{.luma_h = 1, .luma_v = 2},
          JpegKind{.luma_h = 4, .luma_v = 1}})
        BOOST_TEST(!decoder.open(jpeg_file({40, 40}, kind)));
    BOOST_TEST((decoder.size() == ImageSize{}));
    BOOST_TEST(!decoder.open({}));
    YccPlanes planes;
    BOOST_TEST(!decoder.decode_planes({0, 0, 1, 1}, planes));
    BOOST_TEST(decoder.open(jpeg_file({40, 40})));
}

BOOST_AUTO_TEST_CASE(crops_beyond_the_image_are_refused) {
    OwnJpegDecoder decoder;
    const auto file = jpeg_file({40, 30});
    BOOST_REQUIRE(decoder.open(file));
    YccPlanes planes;
    BOOST_TEST(decoder.decode_planes({39, 29, 1, 1}, planes));
    for (const CropBox crop : {CropBox{0, 0, 41, 1}, CropBox{0, 0, 1, 31}, CropBox{40, 0, 1, 1}, CropBox{0, 30, 1, 1},
                               CropBox{0, 0, 0, 1}, CropBox{0, 0, 1, 0}, CropBox{1, 1, ~0u, ~0u}})
        BOOST_TEST(!decoder.decode_planes(crop, planes));
}

BOOST_AUTO_TEST_CASE(what_lies_below_the_crop_is_not_looked_at) {
    auto file = own_jpeg_file({64, 256}, {}, 7);
    OwnJpegLaw law;
    std::fill(file.end() - static_cast<std::ptrdiff_t>(file.size() / 4), file.end() - 2, std::byte{0xAA});
    require_equal(law, file, {0, 0, 64, 40}, "above the damage");
    BOOST_TEST((law.check(file, {0, 200, 64, 56}) == Verdict::gave_up));
}

BOOST_AUTO_TEST_SUITE_END()
