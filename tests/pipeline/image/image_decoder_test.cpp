#include <drawpoint/pipeline/image/image_decoder.hpp>

#include <drawpoint/pipeline/rng.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>
#include "pipeline/image/encode.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <zlib.h>

BOOST_AUTO_TEST_SUITE(image_decoder)

namespace {

using namespace drawpoint;

const std::string folder = DRAWPOINT_TEST_DIR "/pipeline/image/fixtures/";

std::vector<std::byte> fixture(const std::string& name) {
    std::vector<std::byte> file;
    read_file((folder + name).c_str(), file);
    return file;
}

struct Expected {
    std::string name;
    ImageSize size;
    unsigned long sum = 0;
};

// Pillow's results for the fixtures.
std::vector<Expected> expectations() {
    std::ifstream table{folder + "expected.csv"};
    std::vector<Expected> all;
    std::string line;
    std::getline(table, line);
    while (std::getline(table, line)) {
        std::replace(line.begin(), line.end(), ',', ' ');
        std::istringstream words{line};
        Expected expected;
        words >> expected.name >> expected.size.width >> expected.size.height >> std::hex >> expected.sum;
        all.push_back(expected);
    }
    return all;
}

std::vector<std::uint8_t> pixels_of(ImageDecoder& decoder, CropBox crop) {
    std::vector<std::uint8_t> rgb(std::size_t{3} * crop.width * crop.height);
    decoder.decode_rgb(crop, rgb.data());
    return rgb;
}

std::vector<std::uint8_t> pixels_of(ImageDecoder& decoder) {
    return pixels_of(decoder, {0, 0, decoder.size().width, decoder.size().height});
}

// The decoder's error, or empty if it delivered the pixels.
std::string verdict(ImageDecoder& decoder, const std::vector<std::byte>& file) {
    try {
        decoder.open(file);
        (void)pixels_of(decoder);
        return {};
    } catch (const ImageError& error) {
        return error.what();
    }
}

bool starts_with(const std::string& text, const std::string& begin) { return text.rfind(begin, 0) == 0; }

void big_endian(std::byte* to, std::uint32_t value) {
    for (int i = 3; i >= 0; --i, value >>= 8)
        to[i] = static_cast<std::byte>(value & 0xFF);
}

std::size_t find(const std::vector<std::byte>& file, const std::string& bytes) {
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
    const auto at = std::search(file.begin(), file.end(), begin, begin + bytes.size());
    BOOST_REQUIRE((at != file.end()));
    return static_cast<std::size_t>(at - file.begin());
}

// Corrects the checksum of the chunk whose type is at `type`.
void repair(std::vector<std::byte>& file, std::size_t type, std::size_t length) {
    big_endian(file.data() + type + 4 + length,
               static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(file.data() + type), length + 4)));
}

}   // namespace

BOOST_AUTO_TEST_CASE(every_png_and_webp_gives_the_pixels_that_pillow_gives) {
    ImageDecoder decoder;
    const auto all = expectations();
    BOOST_TEST_REQUIRE(all.size() > 40u);
    for (const Expected& expected : all) {
        BOOST_TEST_CONTEXT(expected.name) {
            const auto file = fixture(expected.name);
            decoder.open(file);
            BOOST_TEST_REQUIRE((decoder.size() == expected.size));
            const auto rgb = pixels_of(decoder);
            BOOST_TEST(crc32_z(0, rgb.data(), rgb.size()) == expected.sum);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_crop_has_the_pixels_of_the_whole_image) {
    ImageDecoder decoder;
    for (const char* name : {"rgb8.png", "gray16.png", "gray16_interlaced.png", "palette2_interlaced.png",
                             "larger.webp", "lossy_alpha.webp", "lossless.webp"}) {
        BOOST_TEST_CONTEXT(name) {
            const auto file = fixture(name);
            decoder.open(file);
            const auto whole = pixels_of(decoder);
            const ImageSize size = decoder.size();
            CounterRng random{3, 0, 0};
            for (int trial = 0; trial < 200; ++trial) {
                CropBox crop{.width = 1 + random.next_u32() % size.width,
                             .height = 1 + random.next_u32() % size.height};
                crop.x = random.next_u32() % (size.width - crop.width + 1);
                crop.y = random.next_u32() % (size.height - crop.height + 1);
                const auto part = pixels_of(decoder, crop);
                for (std::uint32_t y = 0; y < crop.height; ++y) {
                    const std::size_t row = std::size_t{3} * crop.width;
                    const auto from =
                        whole.begin() + 3 * ((crop.y + y) * static_cast<std::ptrdiff_t>(size.width) + crop.x);
                    BOOST_TEST_REQUIRE(std::equal(from, from + static_cast<std::ptrdiff_t>(row),
                                                  part.begin() + static_cast<std::ptrdiff_t>(y * row)));
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(decode_resizes_the_pixels_of_the_crop) {
    ImageDecoder decoder;
    for (const char* name : {"pillow_rgb.png", "lossy.webp"}) {
        const auto file = fixture(name);
        decoder.open(file);
        const CropBox crop{5, 3, 30, 20};
        const auto rgb = pixels_of(decoder, crop);
        std::vector<float> expected(3 * 12 * 10), planar(expected.size());
        ResizeScratch scratch;
        resize_normalize({rgb.data(), {30, 20}, 90}, {0, 0, 30, 20}, {12, 10}, true, ResizeFilter::antialias,
                         {ChannelNormalization::imagenet(), expected.data()}, scratch);
        decoder.decode(crop, {12, 10}, true, ResizeFilter::antialias,
                       {ChannelNormalization::imagenet(), planar.data()});
        BOOST_TEST((planar == expected));
    }
}

BOOST_AUTO_TEST_CASE(a_jpeg_is_what_the_jpeg_decoder_makes_of_it) {
    const auto file = test::jpeg_file({50, 40});
    ImageDecoder decoder;
    JpegDecoder jpeg;
    decoder.open(file);
    jpeg.open(file);
    BOOST_TEST((decoder.size() == jpeg.size()));
    std::vector<std::uint8_t> expected(std::size_t{3} * 50 * 40);
    jpeg.decode_rgb({0, 0, 50, 40}, expected.data());
    BOOST_TEST((pixels_of(decoder) == expected));
    std::vector<float> a(3 * 8 * 8), b(a.size());
    decoder.decode({1, 2, 30, 30}, {8, 8}, false, ResizeFilter::antialias, {{}, a.data()});
    jpeg.decode({1, 2, 30, 30}, {8, 8}, false, ResizeFilter::antialias, {{}, b.data()});
    BOOST_TEST((a == b));
}

BOOST_AUTO_TEST_CASE(what_is_no_image_is_refused_with_its_first_bytes) {
    ImageDecoder decoder;
    BOOST_TEST(verdict(decoder, {}) == "not a JPEG, PNG or WebP: the file is empty");
    std::vector<std::byte> gif;
    for (const char letter : {'G', 'I', 'F', '8', '9', 'a'})
        gif.push_back(static_cast<std::byte>(letter));
    BOOST_TEST(verdict(decoder, gif) == "not a JPEG, PNG or WebP: it begins with 47 49 46 38");
    auto webp = fixture("lossless.webp");
    webp[8] = std::byte{'A'};
    BOOST_TEST(verdict(decoder, webp) ==
               "not a JPEG, PNG or WebP: byte 8: a RIFF file of the kind 41 45 42 50, a WebP's is 57 45 42 50");
    webp.resize(11);
    BOOST_TEST(verdict(decoder, webp) == "truncated WebP: it ends at byte 11");
    auto png = fixture("rgb8.png");
    png[4] = std::byte{0x0A};   // as after a transfer in text mode
    BOOST_TEST(verdict(decoder, png) ==
               "damaged PNG: byte 4: its signature goes on with 0A 0A 1A 0A in place of 0D 0A 1A 0A");
    png.resize(7);
    BOOST_TEST(verdict(decoder, png) == "truncated PNG: it ends at byte 7");
    BOOST_TEST((decoder.size() == ImageSize{}));
    std::uint8_t pixel[3];
    BOOST_CHECK_THROW(decoder.decode_rgb({0, 0, 1, 1}, pixel), std::logic_error);
    BOOST_TEST(verdict(decoder, fixture("animation.webp")) == "unsupported WebP: an animation");
    const auto file = fixture("rgb8.png");
    decoder.open(file);
    BOOST_CHECK_THROW(decoder.decode_rgb({19, 0, 1, 1}, pixel), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_file_cut_anywhere_is_truncated) {
    ImageDecoder decoder;
    for (const char* name : {"rgb8_parts.png", "palette4_interlaced.png", "lossy_alpha.webp", "lossless.webp"}) {
        const auto file = fixture(name);
        for (std::size_t bytes = 12; bytes < file.size(); ++bytes) {
            const std::string message =
                verdict(decoder, {file.begin(), file.begin() + static_cast<std::ptrdiff_t>(bytes)});
            BOOST_TEST_REQUIRE(starts_with(message, "truncated "), name << ", " << bytes << " bytes: " << message);
        }
        BOOST_TEST(verdict(decoder, file).empty());
    }
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_of_a_png_is_never_delivered) {
    ImageDecoder decoder;
    for (const char* name : {"rgb8_parts.png", "palette8_trns.png"}) {
        const auto file = fixture(name);
        for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
            auto damaged = file;
            damaged[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
            BOOST_TEST_REQUIRE(!verdict(decoder, damaged).empty(), "bit " << bit);
        }
    }
    auto file = fixture("rgb8.png");
    const std::size_t pixels = find(file, "IDAT");
    file[pixels + 20] ^= std::byte{1};
    BOOST_TEST(verdict(decoder, file) ==
               "damaged PNG: wrong checksum of chunk IDAT at byte " + std::to_string(pixels - 4));
}

BOOST_AUTO_TEST_CASE(what_the_library_refuses_is_named_with_the_byte_where_its_chunk_begins) {
    ImageDecoder decoder;
    auto png = fixture("rgb8.png");
    const std::size_t pixels = find(png, "IDAT");
    png[pixels + 4] ^= std::byte{0x0F};   // not a deflate stream
    repair(png, pixels,
           static_cast<std::size_t>(std::to_integer<unsigned>(png[pixels - 1]) |
                                    std::to_integer<unsigned>(png[pixels - 2]) << 8));
    BOOST_TEST(starts_with(verdict(decoder, png), "damaged PNG: byte " + std::to_string(pixels - 4) + ": "));
    auto webp = fixture("lossless.webp");
    const std::size_t chunk = find(webp, "VP8L");
    std::fill(webp.begin() + static_cast<std::ptrdiff_t>(chunk) + 13, webp.end(), std::byte{0xFF});
    const std::string message = verdict(decoder, webp);
    BOOST_TEST(message.find("WebP: byte " + std::to_string(chunk) + ": ") != std::string::npos, message);
}

BOOST_AUTO_TEST_CASE(a_tiny_file_that_claims_a_huge_image_is_refused_before_memory_is_taken) {
    ImageDecoder decoder;
    auto file = fixture("rgb8.png");
    const auto claim = [&](std::uint32_t width, std::uint32_t height) {
        big_endian(file.data() + 16, width);
        big_endian(file.data() + 20, height);
        repair(file, 12, 13);
        return verdict(decoder, file);
    };
    BOOST_TEST(claim(65500, 65500) ==
               "PNG too large: 65500x65500 pixels in " + std::to_string(file.size()) + " bytes, the limit is 32000000");
    BOOST_TEST(starts_with(claim(8001, 4000), "PNG too large: "));
    BOOST_TEST(starts_with(claim(8000, 4000), "truncated PNG: "));
    BOOST_TEST(starts_with(claim(19, 18), "truncated PNG: "));
    BOOST_TEST(starts_with(claim(0, 17), "damaged PNG: "));
    BOOST_TEST(starts_with(claim(19, 0x80000011), "damaged PNG: "));
    BOOST_TEST(claim(19, 17).empty());

    auto webp = fixture("lossless_alpha.webp");
    const std::size_t canvas = find(webp, "VP8L") + 9;   // 14 bits of width - 1, 14 of height - 1
    for (const std::size_t at : {canvas, canvas + 1, canvas + 2})
        webp[at] = std::byte{0xFF};
    webp[canvas + 3] |= std::byte{0x0F};
    BOOST_TEST(starts_with(verdict(decoder, webp), "WebP too large: 16384x"));
}

BOOST_AUTO_TEST_CASE(beyond_32_million_pixels_a_file_has_at_least_a_byte_for_100) {
    BOOST_TEST(most_pixels(0) == 32'000'000u);
    BOOST_TEST(most_pixels(320'001) == 32'000'100u);
    BOOST_TEST(most_pixels(std::uint64_t{1} << 40) == 178'000'000u);
}

BOOST_AUTO_TEST_CASE(a_png_of_a_kind_that_does_not_exist_is_refused) {
    ImageDecoder decoder;
    const auto with = [&](std::size_t field, int value) {
        auto file = fixture("rgb8.png");
        file[field] = static_cast<std::byte>(value);
        repair(file, 12, 13);
        return verdict(decoder, file);
    };
    for (const auto& [field, value] :
         {std::pair<std::size_t, int>{24, 4}, {24, 0}, {25, 1}, {25, 7}, {26, 1}, {27, 1}, {28, 2}})
        BOOST_TEST(starts_with(with(field, value), "unsupported PNG: colour type "));
    BOOST_TEST(with(25, 3) == "damaged PNG: it has no palette");
    auto file = fixture("palette8.png");
    const std::size_t palette = find(file, "PLTE");
    const char unknown[] = "PXTE";
    for (std::size_t i = 0; i < 4; ++i)
        file[palette + i] = static_cast<std::byte>(unknown[i]);
    repair(file, palette, 600);
    BOOST_TEST(verdict(decoder, file) == "unsupported PNG: chunk PXTE at byte " + std::to_string(palette - 4));
}

BOOST_AUTO_TEST_CASE(damaged_pixels_behind_right_checksums_never_crash_and_leave_the_decoder_usable) {
    ImageDecoder decoder;
    std::size_t refused = 0;
    const auto all = expectations();
    for (std::uint64_t trial = 0; trial < 4000; ++trial) {
        const Expected& expected = all[trial % all.size()];
        auto file = fixture(expected.name);
        CounterRng random{17, 0, trial};
        for (std::uint32_t flips = 1 + random.next_u32() % 3; flips > 0; --flips)
            file[8 + random.next_u32() % (file.size() - 8)] ^= static_cast<std::byte>(1u << random.next_u32() % 8);
        if (expected.name.ends_with(".png"))
            for (std::size_t at = 8; at + 12 <= file.size();) {
                std::size_t length = 0;
                for (std::size_t i = 0; i < 4; ++i)
                    length = length << 8 | std::to_integer<std::size_t>(file[at + i]);
                if (length > file.size() - at - 12)
                    break;
                repair(file, at + 4, length);
                at += length + 12;
            }
        const std::string message = verdict(decoder, file);
        refused += !message.empty();
        BOOST_TEST_REQUIRE(message.find('\n') == std::string::npos);
    }
    BOOST_TEST(refused > 1000u);
    BOOST_TEST(verdict(decoder, fixture("rgb8.png")).empty());
    BOOST_TEST(verdict(decoder, fixture("lossy.webp")).empty());
}

BOOST_AUTO_TEST_SUITE_END()
