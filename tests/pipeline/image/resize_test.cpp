#include <drawpoint/pipeline/image/resize.hpp>

#include "pipeline/image/encode.hpp"
#include "pipeline/image/reference.hpp"
#include "pipeline/image/resample.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

BOOST_AUTO_TEST_SUITE(resize)

namespace {

using namespace drawpoint;
using reference::Rgb;

Rgb rgb(ImageSize size, std::uint64_t seed = 1) { return {size, test::picture(size, 3, seed)}; }

std::vector<std::uint8_t> levels(const Rgb& image, CropBox box, ImageSize target, ResizeScratch& scratch, bool flip,
                                 ResizeFilter filter) {
    std::vector<std::uint8_t> planar(std::size_t{3} * target.width * target.height + 64, 7);
    resize_normalize(image.view(), box, target, flip, filter, PlanarOutput{planar.data()}, scratch);
    return planar;
}

std::vector<float> run(const Rgb& image, CropBox box, ImageSize target, ResizeScratch& scratch, bool flip = false,
                       ResizeFilter filter = ResizeFilter::antialias, ChannelNormalization normalization = {}) {
    std::vector<float> planar(std::size_t{3} * target.width * target.height);
    resize_normalize(image.view(), box, target, flip, filter, {normalization, planar.data()}, scratch);
    return planar;
}

CropBox whole(const Rgb& image) { return {0, 0, image.size.width, image.size.height}; }

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Input and target sizes: enlarging, scale 1, a little more, 3.5, 7 and more, one pixel, widths around 8 and 32 bytes.
const std::vector<std::pair<ImageSize, ImageSize>> scales{
    {{224, 224}, {224, 224}},
    {{225, 223}, {224, 224}},
    {{100, 60}, {224, 224}},
    {{10, 11}, {33, 40}},
    {{784, 785}, {224, 224}},
    {{790, 780}, {223, 225}},
    {{1600, 30}, {224, 9}},
    {{33, 1700}, {8, 224}},
    {{1, 1}, {5, 7}},
    {{1, 50}, {10, 10}},
    {{50, 1}, {10, 10}},
    {{7, 9}, {3, 2}},
    {{640, 480}, {1, 1}},
    {{640, 480}, {7, 7}},
    {{11, 10}, {11, 10}},
    {{500, 375}, {96, 128}},
    {{3000, 20}, {16, 16}},
    {{20, 3000}, {17, 16}},
    {{129, 129}, {2, 2}},
    {{128, 127}, {2, 2}},
    // The taps of 16 outputs span 64 and 128 bytes, or those of 4 outputs span 16.
    {{820, 60}, {224, 40}},
    {{835, 60}, {224, 40}},
    {{1650, 60}, {224, 40}},
    {{1700, 60}, {224, 40}},
    {{700, 60}, {224, 40}},
    {{730, 60}, {224, 40}},
    {{64, 60}, {16, 15}},
    {{65, 60}, {16, 15}},
    {{128, 60}, {16, 15}},
    {{129, 60}, {16, 15}},
    {{224, 600}, {15, 100}},
    {{224, 700}, {17, 100}},
};

}   // namespace

BOOST_AUTO_TEST_CASE(a_resize_is_within_one_level_of_the_reference_at_every_scale) {
    ResizeScratch scratch;
    for (const auto& [size, target] : scales)
        for (const ResizeFilter filter : {ResizeFilter::antialias, ResizeFilter::bilinear}) {
            const Rgb image = rgb(size);
            const auto difference = reference::compare(run(image, whole(image), target, scratch, false, filter),
                                                       reference::resize(image, target, filter));
            BOOST_TEST_CONTEXT(size.width << 'x' << size.height << " to " << target.width << 'x' << target.height) {
                BOOST_TEST(difference.largest < 1.001);
                if (std::size_t{target.width} * target.height >= 1000)
                    BOOST_TEST(difference.mean <= 0.3);   // for noise; the other order of the passes rounds differently
            }
        }
}

BOOST_AUTO_TEST_CASE(levels_are_those_of_floats_and_nothing_is_written_beyond) {
    for (const PixelKernels* kernels : {&portable_kernels(), avx2_kernels(), avx512_kernels()}) {
        if (kernels == nullptr)
            continue;
        ResizeScratch scratch;
        scratch.buffers().kernels = kernels;
        for (const auto& [from, to] : scales)
            for (const ResizeFilter filter : {ResizeFilter::antialias, ResizeFilter::bilinear})
                for (const bool flip : {false, true}) {
                    const Rgb image = rgb(from);
                    const std::vector<float> floats = run(image, whole(image), to, scratch, flip, filter);
                    const std::vector<std::uint8_t> bytes = levels(image, whole(image), to, scratch, flip, filter);
                    std::size_t wrong = 0;
                    for (std::size_t i = 0; i < bytes.size(); ++i)
                        wrong += i < floats.size() ? static_cast<float>(bytes[i]) * (1 / 255.0F) != floats[i]
                                                   : bytes[i] != 7;
                    BOOST_TEST(wrong == 0u);
                }
    }
}

BOOST_AUTO_TEST_CASE(every_set_of_kernels_gives_the_same_bytes) {
    ResizeScratch portable;
    portable.buffers().kernels = &portable_kernels();
    for (const PixelKernels* kernels : {avx2_kernels(), avx512_kernels()}) {
        if (kernels == nullptr) {
            BOOST_TEST_MESSAGE("not on this processor: AVX2, or AVX-512 with VBMI and VNNI");
            continue;
        }
        ResizeScratch fast;
        fast.buffers().kernels = kernels;
        for (const auto& [size, target] : scales)
            for (const bool flip : {false, true})
                for (const ResizeFilter filter : {ResizeFilter::antialias, ResizeFilter::bilinear}) {
                    const Rgb image = rgb(size, 2);
                    const auto imagenet = ChannelNormalization::imagenet();
                    BOOST_TEST_CONTEXT(size.width << 'x' << size.height << " to " << target.width << 'x'
                                                  << target.height)
                    BOOST_TEST(same_bytes(run(image, whole(image), target, fast, flip, filter, imagenet),
                                          run(image, whole(image), target, portable, flip, filter, imagenet)));
                }
    }
}

BOOST_AUTO_TEST_CASE(memory_that_is_not_aligned_gets_the_same_bytes) {
    // Large planes with rows so aligned that they are written past the cache; 8 floats further on, AVX2 still does so.
    constexpr ImageSize target{96, 96};
    constexpr std::size_t count = std::size_t{3} * target.width * target.height;
    alignas(64) static float memory[count + 16];
    const Rgb image = rgb({300, 200});
    for (const PixelKernels* kernels : {&portable_kernels(), avx2_kernels(), avx512_kernels()}) {
        if (kernels == nullptr)
            continue;
        ResizeScratch scratch;
        scratch.buffers().kernels = kernels;
        const auto resized_to = [&](std::size_t at) {
            std::fill(std::begin(memory), std::end(memory), -1.0F);
            resize_normalize(image.view(), whole(image), target, false, ResizeFilter::antialias, {{}, memory + at},
                             scratch);
            return std::vector<float>(memory + at, memory + at + count);
        };
        const std::vector<float> aligned = resized_to(0);
        for (const std::size_t at : {1u, 8u})
            BOOST_TEST(same_bytes(aligned, resized_to(at)));
    }
}

BOOST_AUTO_TEST_CASE(a_flip_is_the_mirror_image) {
    ResizeScratch scratch;
    for (const auto& [size, target] : scales) {
        const Rgb image = rgb(size, 3);
        const auto plain = run(image, whole(image), target, scratch);
        const auto flipped = run(image, whole(image), target, scratch, true);
        bool mirrored = true;
        for (std::size_t row = 0; row < std::size_t{3} * target.height; ++row)
            for (std::size_t x = 0; x < target.width; ++x)
                mirrored =
                    mirrored && flipped[row * target.width + x] == plain[row * target.width + target.width - 1 - x];
        BOOST_TEST(mirrored);
    }
}

BOOST_AUTO_TEST_CASE(the_same_size_keeps_every_pixel) {
    ResizeScratch scratch;
    const Rgb image = rgb({61, 47});
    for (const ResizeFilter filter : {ResizeFilter::antialias, ResizeFilter::bilinear})
        BOOST_TEST(reference::compare(run(image, whole(image), image.size, scratch, false, filter), image).largest <
                   0.001);
}

BOOST_AUTO_TEST_CASE(pixels_outside_the_crop_have_no_influence) {
    ResizeScratch scratch;
    Rgb image = rgb({90, 80});
    const CropBox box{13, 21, 40, 37};
    const auto before = run(image, box, {32, 32}, scratch);
    BOOST_TEST(same_bytes(before, run(reference::crop(image, box), {0, 0, 40, 37}, {32, 32}, scratch)));
    for (std::uint32_t y = 0; y < 80; ++y)
        for (std::uint32_t x = 0; x < 90; ++x)
            if (x < 13 || x >= 53 || y < 21 || y >= 58)
                for (std::size_t c = 0; c < 3; ++c)
                    image.pixels[(y * 90 + x) * 3 + c] ^= 0xFF;
    BOOST_TEST(same_bytes(before, run(image, box, {32, 32}, scratch)));
}

BOOST_AUTO_TEST_CASE(a_flat_image_stays_flat_at_every_scale) {
    ResizeScratch scratch;
    for (const auto& [size, target] : scales)
        for (const std::uint8_t level : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{254}, std::uint8_t{255}}) {
            Rgb image{size, std::vector<std::uint8_t>(std::size_t{3} * size.width * size.height, level)};
            const Rgb flat{target, std::vector<std::uint8_t>(std::size_t{3} * target.width * target.height, level)};
            BOOST_TEST(reference::compare(run(image, whole(image), target, scratch), flat).largest < 0.001);
        }
}

BOOST_AUTO_TEST_CASE(normalization_is_pixel_less_mean_over_deviation) {
    ResizeScratch scratch;
    const Rgb image = rgb({16, 16});
    const auto planar = run(image, whole(image), {16, 16}, scratch, false, ResizeFilter::antialias,
                            {{0.5F, 0.25F, 0.0F}, {0.5F, 2.0F, 0.125F}});
    const double mean[3] = {0.5, 0.25, 0}, deviation[3] = {0.5, 2, 0.125};
    for (std::size_t i = 0; i < 256; ++i)
        for (std::size_t c = 0; c < 3; ++c)
            BOOST_REQUIRE_SMALL(planar[c * 256 + i] - (image.pixels[3 * i + c] / 255.0 - mean[c]) / deviation[c], 1e-6);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_done_is_refused) {
    ResizeScratch scratch;
    const Rgb image = rgb({16, 16});
    BOOST_CHECK_THROW(run(image, {0, 0, 0, 5}, {4, 4}, scratch), std::invalid_argument);
    BOOST_CHECK_THROW(run(image, {8, 0, 9, 5}, {4, 4}, scratch), std::invalid_argument);
    BOOST_CHECK_THROW(run(image, {0, 0xFFFFFFFF, 2, 2}, {4, 4}, scratch), std::invalid_argument);
    BOOST_CHECK_THROW(run(image, {0, 0, 5, 5}, {4, 0}, scratch), std::invalid_argument);
    BOOST_CHECK_THROW(run(image, {0, 0, 5, 5}, {4, 4}, scratch, false, ResizeFilter::antialias, {{}, {1, 0, 1}}),
                      std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
