#include <drawpoint/pipeline/image/crop.hpp>
#include <drawpoint/pipeline/image/image_decoder.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>
#include "pipeline/image/encode.hpp"
#include "support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <span>
#include <string_view>
#include <vector>

namespace {

std::atomic<std::size_t> allocations{0}, largest{0};   // bytes

void* count_and_allocate(std::size_t bytes, std::size_t alignment) {
    ++allocations;
    largest = std::max<std::size_t>(largest, bytes);
    if (void* memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment))
        return memory;
    throw std::bad_alloc();
}

}   // namespace

// Counts every operator new of this test program; libjpeg uses malloc, which is not counted.
void* operator new(std::size_t bytes) { return count_and_allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return count_and_allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

BOOST_AUTO_TEST_SUITE(decode_allocation)

using namespace drawpoint;

BOOST_AUTO_TEST_CASE(reading_and_decoding_stop_allocating_after_one_image_of_each_size) {
    const test::TemporaryFolder folder;
    std::vector<std::filesystem::path> paths;
    for (std::uint32_t number = 0; number < 4; ++number)
        paths.push_back(
            folder.write(std::to_string(number) + ".jpg",
                         test::jpeg_file({400 + 50 * number, 700 - 90 * number}, {.progressive = number == 3})));
    for (const JpegBackend backend : {JpegBackend::library, JpegBackend::own}) {
        JpegDecoder decoder{backend};
        std::vector<std::byte> file;
        std::vector<float> planar(3 * 224 * 224);
        std::vector<std::uint8_t> pixels(3 * 800 * 800);
        std::size_t before = 0;
        for (std::uint64_t index = 0; index < 80; ++index) {
            if (index == paths.size())
                before = allocations;
            CounterRng random{1, 0, index};
            read_file(paths[index % paths.size()].c_str(), file);
            decoder.open(file);
            const CropBox box = random_resized_crop(decoder.size(), {}, random);
            decoder.decode(box, {224, 224}, index % 2 == 0, ResizeFilter::antialias,
                           {ChannelNormalization::imagenet(), planar.data()});
            decoder.decode_rgb(box, pixels.data());
        }
        BOOST_TEST(before > 0u);
        BOOST_TEST(allocations - before == 0u);
    }
}

BOOST_AUTO_TEST_CASE(after_one_image_of_a_size_no_crop_of_it_allocates_flipped_or_not) {
    std::vector<float> planar(3 * 224 * 224);
    std::vector<std::uint8_t> pixels(3 * 500 * 375);
    for (const ImageSize size : {ImageSize{500, 375}, {1600, 40}, {40, 1600}})
        for (const test::JpegKind& kind : {test::JpegKind{}, {.components = 4}, {.progressive = true}}) {
            const auto file = test::jpeg_file(size, kind);
            for (const JpegBackend backend : {JpegBackend::library, JpegBackend::own})
                for (const ResizeFilter filter : {ResizeFilter::antialias, ResizeFilter::bilinear})
                    for (const ImageSize target : {ImageSize{224, 224}, {8, 8}}) {
                        JpegDecoder decoder{backend};
                        CounterRng random{3, 0, 1};
                        const auto decode = [&](CropBox box, bool flip) {
                            decoder.open(file);
                            decoder.decode(box, target, flip, filter,
                                           {ChannelNormalization::imagenet(), planar.data()});
                            decoder.decode_rgb(box, pixels.data());
                        };
                        decode({size.width / 2, size.height / 2, 1, 1}, false);
                        const std::size_t before = allocations;
                        for (int i = 0; i < 2; ++i)
                            decode(random_resized_crop(size, {}, random), i % 2 == 0);
                        for (const bool flip : {false, true})
                            for (const CropBox box : {CropBox{0, 0, size.width, size.height},
                                                      {size.width / 2, 0, 1, size.height},
                                                      {0, size.height / 2, size.width, 1}})
                                decode(box, flip);
                        BOOST_TEST(allocations - before == 0u,
                                   allocations - before << " allocations, " << size.width << "x" << size.height << ", "
                                                        << kind.components << " components to " << target.width);
                    }
        }
}

BOOST_AUTO_TEST_CASE(a_few_rows_of_an_image_whose_padded_rows_take_gigabytes_take_no_such_memory) {
    constexpr std::uint32_t height = 20'000'000;   // of one gray pixel each: 2 bytes in the file, 128 in a window
    std::vector<std::byte> png;
    const auto add = [&png](std::uint32_t number) {
        for (int shift = 24; shift >= 0; shift -= 8)
            png.push_back(static_cast<std::byte>(number >> shift));
    };
    const auto add_chunk = [&](std::string_view type, std::span<const std::byte> data) {
        add(static_cast<std::uint32_t>(data.size()));
        const std::size_t begin = png.size();
        for (const char letter : type)
            png.push_back(static_cast<std::byte>(letter));
        png.insert(png.end(), data.begin(), data.end());
        add(static_cast<std::uint32_t>(
            crc32_z(0, reinterpret_cast<const Bytef*>(png.data() + begin), png.size() - begin)));
    };
    for (const char byte : std::string_view{"\x89PNG\r\n\x1A\n"})
        png.push_back(static_cast<std::byte>(byte));
    std::vector<std::byte> header(13);
    header[3] = std::byte{1};
    for (int i = 0; i < 4; ++i)
        header[4 + static_cast<std::size_t>(i)] = static_cast<std::byte>(height >> (24 - 8 * i));
    header[8] = std::byte{8};
    add_chunk("IHDR", header);
    {
        const std::vector<Bytef> rows(2 * std::size_t{height}, 0);
        uLongf bytes = compressBound(rows.size());
        std::vector<std::byte> packed(bytes);
        BOOST_TEST_REQUIRE(compress2(reinterpret_cast<Bytef*>(packed.data()), &bytes, rows.data(), rows.size(), 1) ==
                           Z_OK);
        add_chunk("IDAT", std::span{packed}.first(bytes));
    }
    add_chunk("IEND", {});

    ImageDecoder decoder;
    decoder.open(png);
    BOOST_TEST((decoder.size() == ImageSize{1, height}));
    std::vector<std::uint8_t> pixels(3 * 5, 1);
    largest = 0;
    decoder.decode_rgb({0, 2, 1, 5}, pixels.data());
    BOOST_TEST(largest <= std::size_t{1} << 20);
    BOOST_TEST(std::ranges::count(pixels, 0) == 15);
}

BOOST_AUTO_TEST_SUITE_END()
