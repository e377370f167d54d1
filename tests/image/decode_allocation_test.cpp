#include "drawpoint/pipeline/image/crop.hpp"
#include "drawpoint/pipeline/image/jpeg.hpp"
#include "drawpoint/pipeline/storage/file_reader.hpp"
#include "image/encode.hpp"
#include "support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

namespace {

std::atomic<std::size_t> allocations{0};

void* count_and_allocate(std::size_t bytes, std::size_t alignment) {
    ++allocations;
    if (void* memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment))
        return memory;
    throw std::bad_alloc();
}

}   // namespace

// Every operator new of this test program is counted; what libjpeg takes comes from malloc and is not.
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

BOOST_AUTO_TEST_CASE(reading_and_decoding_stop_allocating_after_the_first_images) {
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
            if (index == 8)
                before = allocations;
            CounterRng random{1, 0, index};
            read_file(paths[index % paths.size()].c_str(), file);
            decoder.open(file);
            const CropBox box = random_resized_crop(decoder.size(), {}, random);
            decoder.decode(box, {224, 224}, index % 2 == 0, ResizeFilter::antialias, ChannelNormalization::imagenet(),
                           planar.data());
            decoder.decode_rgb(box, pixels.data());
        }
        BOOST_TEST(before > 0u);
        BOOST_TEST(allocations - before == 0u);
    }
}

BOOST_AUTO_TEST_SUITE_END()
