#include <drawpoint/pipeline/image/jpeg.hpp>

#include <drawpoint/pipeline/rng.hpp>
#include "pipeline/image/encode.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(jpeg_hostile)

namespace {

using namespace drawpoint;

// What a decoder that has decoded other files before says about a file: empty if it delivered the pixels.
std::string verdict(JpegDecoder& decoder, const std::vector<std::byte>& file) {
    std::vector<float> planar(3 * 16 * 16);
    try {
        decoder.open(file);
        const ImageSize size = decoder.size();
        decoder.decode({0, 0, size.width, size.height}, {16, 16}, false, ResizeFilter::antialias, {{}, planar.data()});
        return {};
    } catch (const ImageError& error) {
        return error.what();
    }
}

// The same without decoding; a crop above the damage relies on it.
std::string verdict_of_open(JpegDecoder& decoder, const std::vector<std::byte>& file) {
    try {
        decoder.open(file);
        return {};
    } catch (const ImageError& error) {
        return error.what();
    }
}

bool starts_with(const std::string& text, const std::string& begin) { return text.rfind(begin, 0) == 0; }

std::size_t find_marker(const std::vector<std::byte>& file, int marker) {
    for (std::size_t i = 0; i + 1 < file.size(); ++i)
        if (file[i] == std::byte{0xFF} && file[i + 1] == static_cast<std::byte>(marker))
            return i;
    throw std::logic_error("no such marker");
}

}   // namespace

BOOST_AUTO_TEST_CASE(what_is_not_a_jpeg_is_refused_as_such) {
    JpegDecoder decoder;
    BOOST_TEST(verdict(decoder, {}) == "not a JPEG: the file is empty");
    BOOST_TEST(starts_with(verdict(decoder, {std::byte{0xFF}}), "not a JPEG"));
    BOOST_TEST(starts_with(verdict(decoder, std::vector<std::byte>(1000, std::byte{0})), "not a JPEG"));
    BOOST_TEST(
        starts_with(verdict(decoder, {std::byte{0x89}, std::byte{'P'}, std::byte{'N'}, std::byte{'G'}}), "not a JPEG"));
    BOOST_TEST((decoder.size() == ImageSize{}));
}

BOOST_AUTO_TEST_CASE(a_file_cut_anywhere_is_truncated_even_if_the_crop_lies_above_the_cut) {
    JpegDecoder decoder;
    for (const test::JpegKind kind :
         {test::JpegKind{}, test::JpegKind{.progressive = true}, test::JpegKind{.restart_rows = 1}}) {
        const auto file = test::jpeg_file({120, 90}, kind);
        for (std::size_t sixteenth = 1; sixteenth < 16; ++sixteenth) {
            const std::vector<std::byte> cut(file.begin(),
                                             file.begin() + static_cast<std::ptrdiff_t>(file.size() * sixteenth / 16));
            BOOST_TEST(starts_with(verdict_of_open(decoder, cut), "truncated JPEG"));
        }
        for (std::size_t missing = 1; missing <= 2; ++missing) {
            const std::vector<std::byte> cut(file.begin(), file.end() - static_cast<std::ptrdiff_t>(missing));
            BOOST_TEST(starts_with(verdict_of_open(decoder, cut), "truncated JPEG"));
        }
        const std::vector<std::byte> header(file.begin(),
                                            file.begin() + static_cast<std::ptrdiff_t>(find_marker(file, 0xDA)));
        BOOST_TEST(starts_with(verdict(decoder, header), "truncated JPEG"));
        BOOST_TEST(verdict(decoder, file).empty());
    }
}

BOOST_AUTO_TEST_CASE(an_end_marker_put_in_early_is_damage_and_not_an_image) {
    JpegDecoder decoder;
    auto file = test::jpeg_file({120, 90});
    file.resize(file.size() / 2);
    file.push_back(std::byte{0xFF});
    file.push_back(std::byte{0xD9});
    BOOST_TEST(!verdict(decoder, file).empty());
}

BOOST_AUTO_TEST_CASE(a_thumbnail_s_end_marker_does_not_make_a_cut_file_whole) {
    JpegDecoder decoder;
    const auto file = test::jpeg_file({120, 90});
    const auto thumbnail = test::jpeg_file({16, 16}, {.quality = 30});
    std::vector<std::byte> with(file.begin(), file.begin() + 2);
    const std::size_t length = thumbnail.size() + 2;
    for (const std::size_t value : {std::size_t{0xFF}, std::size_t{0xE1}, length >> 8, length & 0xFF})
        with.push_back(static_cast<std::byte>(value));
    with.insert(with.end(), thumbnail.begin(), thumbnail.end());
    with.insert(with.end(), file.begin() + 2, file.end());
    BOOST_TEST(verdict(decoder, with).empty());
    with.resize(with.size() - file.size() / 3);
    BOOST_TEST(starts_with(verdict_of_open(decoder, with), "truncated JPEG"));
}

BOOST_AUTO_TEST_CASE(a_tiny_file_that_claims_a_huge_image_is_refused_before_memory_is_taken) {
    JpegDecoder decoder;
    auto file = test::jpeg_file({16, 16});
    const std::size_t frame = find_marker(file, 0xC0);
    const auto claim = [&](unsigned width, unsigned height) {
        const unsigned bytes[4] = {height >> 8, height & 0xFF, width >> 8, width & 0xFF};
        for (std::size_t i = 0; i < 4; ++i)
            file[frame + 5 + i] = static_cast<std::byte>(bytes[i]);
        return verdict(decoder, file);
    };
    BOOST_TEST(claim(65500, 65500) == "JPEG too large: 65500x65500 pixels in " + std::to_string(file.size()) +
                                          " bytes, the limit is 32000000");
    BOOST_TEST(starts_with(claim(8001, 4000), "JPEG too large"));
    BOOST_TEST(starts_with(claim(65535, 65535), "JPEG too large"));
    BOOST_TEST(starts_with(claim(8000, 4000), "truncated JPEG"));
    BOOST_TEST(!claim(0, 16).empty());
    BOOST_TEST(!claim(16, 0).empty());
    BOOST_TEST(claim(16, 16).empty());
}

BOOST_AUTO_TEST_CASE(coding_that_is_not_supported_is_named) {
    JpegDecoder decoder;
    BOOST_TEST(verdict(decoder, test::jpeg_file({32, 32}, {.arithmetic = true})) ==
               "unsupported JPEG: arithmetic coding");
    auto file = test::jpeg_file({32, 32});
    const std::size_t frame = find_marker(file, 0xC0);
    file[frame + 4] = std::byte{12};
    BOOST_TEST(starts_with(verdict(decoder, file), "unsupported JPEG"));
    file[frame + 4] = std::byte{8};
    file[frame + 1] = std::byte{0xC3};   // a lossless frame
    BOOST_TEST(starts_with(verdict(decoder, file), "unsupported JPEG"));
}

BOOST_AUTO_TEST_CASE(more_than_a_hundred_scans_are_refused) {
    JpegDecoder decoder;
    BOOST_TEST(verdict(decoder, test::jpeg_file({32, 32}, {.scans = 90})).empty());
    const std::string message = verdict(decoder, test::jpeg_file({32, 32}, {.scans = 120}));
    BOOST_TEST(starts_with(message, "unsupported JPEG: byte "));
    BOOST_TEST(message.ends_with(": more than 100 scans"));
}

BOOST_AUTO_TEST_CASE(a_damaged_file_s_message_says_the_byte_that_the_decoder_had_come_to) {
    JpegDecoder decoder;
    const auto byte_of = [&](const std::vector<std::byte>& file) {
        const std::string message = verdict(decoder, file);
        BOOST_TEST_REQUIRE(starts_with(message, "damaged JPEG: byte "), message);
        return std::stoull(message.substr(std::string{"damaged JPEG: byte "}.size()));
    };
    const auto file = test::jpeg_file({640, 480}, {.restart_rows = 1});
    std::vector<std::size_t> rows;   // where a restart marker follows a row of blocks
    for (std::size_t at = find_marker(file, 0xDA); at + 1 < file.size(); ++at)
        if (file[at] == std::byte{0xFF} && (file[at + 1] & std::byte{0xF8}) == std::byte{0xD0})
            rows.push_back(at);
    for (const std::size_t row : {std::size_t{3}, rows.size() / 2, rows.size() - 2}) {
        auto damaged = file;
        std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(rows[row]) + 2, 40, std::byte{0xFE});
        const std::size_t byte = byte_of(damaged);
        BOOST_TEST(byte >= rows[row - 1]);
        BOOST_TEST(byte <= rows[row + 1]);
    }
    auto tables = file;
    const std::size_t table = find_marker(file, 0xC4);
    tables[table + 4] = std::byte{0x77};   // there is no such Huffman table
    const std::size_t byte = byte_of(tables);
    BOOST_TEST(byte >= table);
    BOOST_TEST(byte <= table + 4 + 17 + 256);
    auto cut = file;
    cut.resize(file.size() / 2);
    BOOST_TEST(verdict(decoder, cut) ==
               "truncated JPEG: it ends at byte " + std::to_string(cut.size()) + " without an end marker");
}

BOOST_AUTO_TEST_CASE(flipped_bits_never_crash_and_leave_the_decoder_usable) {
    JpegDecoder decoder;
    const std::vector<std::vector<std::byte>> files{
        test::jpeg_file({64, 48}), test::jpeg_file({64, 48}, {.progressive = true}),
        test::jpeg_file({64, 48}, {.luma_h = 1, .luma_v = 1, .restart_rows = 1}),
        test::jpeg_file({33, 47}, {.components = 1}), test::jpeg_file({33, 47}, {.components = 4, .ycck = true})};
    std::size_t refused = 0;
    const std::size_t trials = 2000;
    for (std::size_t trial = 0; trial < trials; ++trial) {
        CounterRng random{11, 0, trial};
        auto file = files[trial % files.size()];
        const std::size_t within =
            // half of the trials include the headers
            trial % 2 == 0 ? file.size() : std::min<std::size_t>(file.size(), 640);
        for (std::uint32_t flips = 1 + random.next_u32() % 4; flips > 0; --flips)
            file[random.next_u32() % within] ^= static_cast<std::byte>(1u << random.next_u32() % 8);
        const std::string message = verdict(decoder, file);
        refused += !message.empty();
        BOOST_REQUIRE(message.find('\n') == std::string::npos);
    }
    BOOST_TEST(refused > trials / 10);
    for (const auto& file : files)
        BOOST_TEST(verdict(decoder, file).empty());
}

BOOST_AUTO_TEST_CASE(every_backend_says_and_delivers_the_same_of_a_damaged_file) {
    JpegDecoder library{JpegBackend::library}, own{JpegBackend::own};
    const std::vector<std::vector<std::byte>> files{
        test::jpeg_file({64, 48}), test::jpeg_file({64, 48}, {.luma_v = 1}),
        test::jpeg_file({33, 47}, {.components = 1}),
        test::jpeg_file({64, 48}, {.luma_h = 1, .luma_v = 1, .restart_rows = 1})};
    const auto sample = [](JpegDecoder& decoder, const std::vector<std::byte>& file, CropBox crop) {
        std::vector<float> planar(3 * 16 * 16);
        try {
            decoder.open(file);
            decoder.decode(crop, {16, 16}, false, ResizeFilter::antialias, {{}, planar.data()});
            return std::pair{std::string{}, planar};
        } catch (const std::exception& error) {
            return std::pair{std::string{error.what()}, std::vector<float>{}};
        }
    };
    std::size_t refused = 0;
    const std::size_t trials = 3000;
    for (std::size_t trial = 0; trial < trials; ++trial) {
        CounterRng random{12, 0, trial};
        auto file = files[trial % files.size()];
        const std::size_t within = trial % 2 == 0 ? file.size() : std::min<std::size_t>(file.size(), 640);
        for (std::uint32_t flips = 1 + random.next_u32() % 3; flips > 0; --flips)
            file[random.next_u32() % within] ^= static_cast<std::byte>(1u << random.next_u32() % 8);
        const CropBox crop{random.next_u32() % 17, random.next_u32() % 20, 16, 1 + random.next_u32() % 27};
        const auto expected = sample(library, file, crop), got = sample(own, file, crop);
        refused += !expected.first.empty();
        BOOST_TEST_CONTEXT("trial " << trial) {
            BOOST_REQUIRE(got.first == expected.first);
            BOOST_REQUIRE((got.second == expected.second));
        }
    }
    BOOST_TEST(refused > trials / 10);
    BOOST_TEST(refused < trials);
}

BOOST_AUTO_TEST_CASE(a_file_without_its_tables_is_not_decoded_with_those_of_the_file_before) {
    for (const JpegBackend backend : {JpegBackend::library, JpegBackend::own})
        for (const int marker : {0xDB, 0xC4}) {
            auto file = test::jpeg_file({64, 48}, {.quality = 40});
            const std::size_t begin = find_marker(file, marker);
            const std::size_t length =
                std::to_integer<std::size_t>(file[begin + 2]) * 256 + std::to_integer<std::size_t>(file[begin + 3]);
            file.erase(file.begin() + static_cast<std::ptrdiff_t>(begin),
                       file.begin() + static_cast<std::ptrdiff_t>(begin + 2 + length));
            const auto sample = [&file](JpegDecoder& decoder) {
                std::vector<float> planar(3 * 16 * 16);
                try {
                    decoder.open(file);
                    decoder.decode({0, 0, 64, 48}, {16, 16}, false, ResizeFilter::antialias, {{}, planar.data()});
                } catch (const ImageError&) {
                    planar.clear();
                }
                return planar;
            };
            JpegDecoder fresh{backend}, used{backend};
            BOOST_TEST(verdict(used, test::jpeg_file({64, 48}, {.quality = 95})).empty());
            BOOST_TEST((sample(used) == sample(fresh)));
        }
}

BOOST_AUTO_TEST_SUITE_END()
