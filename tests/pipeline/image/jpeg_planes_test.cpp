// From planes to the batch: compares each step with code written for clarity, and the whole with the library's decode.
#include <drawpoint/pipeline/image/crop.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include "pipeline/image/encode.hpp"
#include "pipeline/image/reference.hpp"
#include "pipeline/image/resample.hpp"
#include "pipeline/image/ycc_rows.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(jpeg_planes)

namespace {

using namespace drawpoint;
using reference::Rgb;
using test::JpegKind;

const std::vector<std::pair<const char*, const PixelKernels*>> kernel_sets{
    {"portable", &portable_kernels()}, {"AVX2", avx2_kernels()}, {"AVX-512", avx512_kernels()}};

const std::vector<ChromaSampling> samplings{ChromaSampling::gray, ChromaSampling::s444, ChromaSampling::s422,
                                            ChromaSampling::s420};

/// Planes of noise for a whole image.
struct NoisePlanes {
    NoisePlanes(ImageSize size, ChromaSampling sampling, std::uint64_t seed) {
        CounterRng random{seed, 0, 0};
        const bool half_width = sampling == ChromaSampling::s420 || sampling == ChromaSampling::s422;
        const bool half_height = sampling == ChromaSampling::s420;
        planes = {sampling, size, {}, {}, {}};
        const auto fill = [&](std::vector<std::uint8_t>& samples, std::uint32_t width, std::uint32_t height) {
            samples.resize(std::size_t{width} * height);
            for (std::uint8_t& sample : samples)   // extreme values, which overflow most easily
                sample = static_cast<std::uint8_t>(random.next_u32() % 4 == 0 ? 255 * (random.next_u32() % 2)
                                                                              : random.next_u32());
            return PlaneView{samples.data(), width, 0, 0};
        };
        planes.luma = fill(memory[0], size.width, size.height);
        for (PlaneView* plane : {&planes.blue, &planes.red})
            if (sampling != ChromaSampling::gray)
                *plane = fill(memory[plane == &planes.blue ? 1 : 2], half_width ? (size.width + 1) / 2 : size.width,
                              half_height ? (size.height + 1) / 2 : size.height);
    }
    std::vector<std::uint8_t> memory[3];
    YccPlanes planes;
};

/// A copy of only what a decoder promises for a crop, with `margin` on each side; everything around it is `poison`.
struct PromisedPlanes {
    PromisedPlanes(const YccPlanes& whole, CropBox crop, std::uint8_t poison) : planes{whole} {
        const auto cut = [&](const PlaneView& from, std::uint32_t h, std::uint32_t v, std::vector<std::uint8_t>& to) {
            const std::uint32_t width = (whole.image.width + h - 1) / h, height = (whole.image.height + v - 1) / v;
            const std::uint32_t left = crop.x / h - std::min(crop.x / h, 1u),
                                top = crop.y / v - std::min(crop.y / v, 1u);
            const std::uint32_t right = std::min(width, (crop.x + crop.width - 1) / h + 2);
            const std::uint32_t bottom = std::min(height, (crop.y + crop.height - 1) / v + 2);
            const std::size_t stride = right - left + 64;
            to.assign(64 + stride * (bottom - top) + 64, poison);
            for (std::uint32_t y = top; y < bottom; ++y)
                std::copy_n(from.samples + y * from.stride + left, right - left, to.data() + 64 + (y - top) * stride);
            return PlaneView{to.data() + 64, stride, left, top};
        };
        const std::uint32_t h = whole.sampling == ChromaSampling::s444 ? 1 : 2;
        planes.luma = cut(whole.luma, 1, 1, memory[0]);
        if (whole.sampling == ChromaSampling::gray)
            return;
        planes.blue = cut(whole.blue, h, whole.sampling == ChromaSampling::s420 ? 2 : 1, memory[1]);
        planes.red = cut(whole.red, h, whole.sampling == ChromaSampling::s420 ? 2 : 1, memory[2]);
    }
    std::vector<std::uint8_t> memory[3];
    YccPlanes planes;
};

Rgb rows_of(const YccPlanes& planes, CropBox crop, const PixelKernels& kernels) {
    const YccRows rows{planes, crop, kernels};
    const std::size_t plane = rows.plane_stride();
    std::vector<std::int16_t> scratch(rows.scratch_words());
    std::vector<std::uint8_t> memory(3 * plane * crop.height);
    rows.make(0, crop.height, scratch.data(), memory.data(), 3 * plane);
    Rgb image{{crop.width, crop.height}, {}};
    for (std::uint32_t y = 0; y < crop.height; ++y)
        for (std::size_t x = 0; x < crop.width; ++x)
            for (std::size_t c = 0; c < 3; ++c)
                image.pixels.push_back(memory[(y * 3 + c) * plane + rows.skip() + x]);
    return image;
}

// Decodes at scale 1, which gives exactly the crop.
Rgb decode_at_scale_1(JpegDecoder& decoder, CropBox crop, bool flip = false) {
    const std::size_t plane = std::size_t{crop.width} * crop.height;
    std::vector<float> planar(3 * plane);
    decoder.decode(crop, {crop.width, crop.height}, flip, ResizeFilter::antialias, {{}, planar.data()});
    Rgb image{{crop.width, crop.height}, std::vector<std::uint8_t>(3 * plane)};
    for (std::size_t i = 0; i < plane; ++i)
        for (std::size_t c = 0; c < 3; ++c)
            image.pixels[3 * i + c] = static_cast<std::uint8_t>(planar[c * plane + i] * 255.0F + 0.5F);
    return image;
}

const std::vector<std::pair<std::string, JpegKind>> kinds{
    {"4:2:0", {}},
    {"4:2:0 coarse", {.quality = 10}},
    {"4:2:2", {.luma_v = 1}},
    {"4:4:4", {.luma_h = 1, .luma_v = 1}},
    {"gray", {.components = 1}},
    {"progressive", {.progressive = true}},
    {"progressive 4:2:2", {.luma_v = 1, .progressive = true}},
    {"progressive gray", {.components = 1, .progressive = true}},
    {"never refined", {.quality = 60, .scans = 5}},
    {"restart markers", {.restart_rows = 1}},
    {"4:4:0", {.luma_h = 1}},
    {"4:1:1", {.luma_h = 4, .luma_v = 1}},
    {"CMYK", {.components = 4}},
};

const std::vector<std::pair<std::string, JpegBackend>> backends{{"library", JpegBackend::library},
                                                                {"own", JpegBackend::own}};

}   // namespace

BOOST_AUTO_TEST_CASE(every_set_of_kernels_makes_the_colors_of_the_reference_from_what_is_promised_and_nothing_else) {
    for (const auto& [name, kernels] : kernel_sets) {
        if (kernels == nullptr) {
            BOOST_TEST_MESSAGE("not on this processor: " << name);
            continue;
        }
        for (const ChromaSampling sampling : samplings)
            for (const ImageSize size : {ImageSize{5, 3}, ImageSize{6, 1}, ImageSize{37, 9}, ImageSize{130, 6},
                                         ImageSize{131, 7}, ImageSize{200, 4}}) {
                const NoisePlanes noise{size, sampling, size.width};
                const Rgb expected = reference::colors(noise.planes);
                for (std::uint32_t x = 0; x < std::min(size.width, 18u); ++x)
                    for (std::uint32_t y = 0; y < std::min(size.height, 3u); ++y)
                        for (const std::uint32_t width : {1u, 2u, 3u, 16u, 63u, 64u, 65u, size.width}) {
                            const CropBox box{x, y, std::min(width, size.width - x), size.height - y};
                            for (const std::uint8_t poison : {std::uint8_t{0}, std::uint8_t{255}}) {
                                const PromisedPlanes promised{noise.planes, box, poison};
                                BOOST_TEST_CONTEXT(name << " sampling " << static_cast<int>(sampling) << ' '
                                                        << size.width << 'x' << size.height << " crop " << x << ',' << y
                                                        << ' ' << box.width)
                                BOOST_REQUIRE((rows_of(promised.planes, box, *kernels).pixels ==
                                               reference::crop(expected, box).pixels));
                            }
                        }
            }
    }
}

BOOST_AUTO_TEST_CASE(every_set_of_kernels_interleaves_the_pixels_it_is_given_and_writes_nothing_beyond) {
    constexpr std::size_t plane = 256;
    std::vector<std::uint8_t> rgb(3 * plane + row_padding);
    for (std::size_t i = 0; i < rgb.size(); ++i)
        rgb[i] = static_cast<std::uint8_t>(i * 7 + i / plane);
    for (const auto& [name, kernels] : kernel_sets)
        for (std::size_t pixels = 1; kernels != nullptr && pixels <= 200; ++pixels) {
            std::vector<std::uint8_t> out(3 * pixels + 64, 99), expected = out;
            for (std::size_t i = 0; i < 3 * pixels; ++i)
                expected[i] = rgb[i % 3 * plane + i / 3];
            kernels->interleave(rgb.data(), plane, pixels, out.data());
            BOOST_TEST_CONTEXT(name << ", " << pixels << " pixels")
            BOOST_REQUIRE(out == expected);
        }
}

BOOST_AUTO_TEST_CASE(every_combination_of_luma_and_chroma_is_converted_as_the_reference_does) {
    // 256 columns of luma; the rows cover (cb, cr) in steps that include both ends
    std::vector<std::uint8_t> luma(256 + 64), blue(256 + 64), red(256 + 64);
    for (std::size_t i = 0; i < 256; ++i)
        luma[i] = static_cast<std::uint8_t>(i);
    const YccPlanes planes{
        ChromaSampling::s444, {256, 1}, {luma.data(), 320, 0, 0}, {blue.data(), 320, 0, 0}, {red.data(), 320, 0, 0}};
    for (int cb = 0; cb < 256; cb += 5)
        for (int cr = 0; cr < 256; cr += 3) {
            std::fill(blue.begin(), blue.end(), static_cast<std::uint8_t>(cb));
            std::fill(red.begin(), red.end(), static_cast<std::uint8_t>(cr));
            const Rgb expected = reference::colors(planes);
            for (const auto& [name, kernels] : kernel_sets)
                if (kernels != nullptr)
                    BOOST_REQUIRE((rows_of(planes, {0, 0, 256, 1}, *kernels).pixels == expected.pixels));
        }
}

BOOST_AUTO_TEST_CASE(every_set_of_kernels_gives_the_same_sample) {
    ResizeBuffers portable;
    portable.kernels = &portable_kernels();
    for (const ChromaSampling sampling : samplings)
        for (const ImageSize size : {ImageSize{301, 277}, ImageSize{64, 90}, ImageSize{900, 40}, ImageSize{40, 1000}}) {
            const NoisePlanes noise{size, sampling, 5};
            for (std::uint64_t index = 0; index < 6; ++index) {
                CounterRng random{6, 0, index};
                const CropBox box = index == 0 ? CropBox{0, 0, size.width, size.height}
                                               : random_resized_crop(size, {.scale_min = 0.01}, random);
                const PromisedPlanes promised{noise.planes, box, 77};
                const auto sample = [&](ResizeBuffers& buffers) {
                    std::vector<float> planar(std::size_t{3} * 96 * 80);
                    resize_normalize(promised.planes, box, {96, 80}, index % 2 == 1, ResizeFilter::antialias,
                                     {ChannelNormalization::imagenet(), planar.data()}, buffers);
                    return planar;
                };
                const auto expected = sample(portable);
                for (const auto& [name, kernels] : kernel_sets) {
                    if (kernels == nullptr)
                        continue;
                    ResizeBuffers buffers;
                    buffers.kernels = kernels;
                    const auto got = sample(buffers);
                    BOOST_TEST(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0);
                }
            }
        }
}

BOOST_AUTO_TEST_CASE(at_scale_1_every_backend_gives_the_full_decode_at_every_offset) {
    for (const auto& [backend_name, backend] : backends) {
        JpegDecoder decoder{backend};
        for (const auto& [name, kind] : kinds)
            for (const ImageSize size : {ImageSize{83, 71}, ImageSize{96, 64}}) {
                const auto file = test::jpeg_file(size, kind);
                const Rgb full = reference::decode(file);
                decoder.open(file);
                BOOST_TEST_CONTEXT(backend_name << ' ' << name << ' ' << size.width << 'x' << size.height)
                for (std::uint32_t offset = 0; offset < 34; ++offset)
                    for (const std::uint32_t side : {1u, 2u, 15u, 30u})
                        for (const CropBox box :
                             {CropBox{offset, 33 - offset, side, side}, CropBox{offset, 0, side, size.height},
                              CropBox{0, offset, size.width, side},
                              CropBox{size.width - side, size.height - side, side, side}})
                            BOOST_REQUIRE(
                                (decode_at_scale_1(decoder, box).pixels == reference::crop(full, box).pixels));
            }
    }
}

BOOST_AUTO_TEST_CASE(images_of_1_to_39_pixels_are_exact_at_scale_1) {
    for (const auto& [backend_name, backend] : backends) {
        JpegDecoder decoder{backend};
        for (const auto& [name, kind] : kinds)
            for (std::uint32_t side = 1; side < 40; ++side)
                for (const ImageSize size : {ImageSize{side, 40 - side}, ImageSize{side, side}}) {
                    const auto file = test::jpeg_file(size, kind, side);
                    const Rgb full = reference::decode(file);
                    decoder.open(file);
                    const CropBox inner{size.width / 3, size.height / 4, (size.width + 1) / 2, (size.height + 1) / 2};
                    const CropBox corner{size.width - 1, size.height - 1, 1, 1};
                    BOOST_TEST_CONTEXT(backend_name << ' ' << name << ' ' << size.width << 'x' << size.height)
                    for (const CropBox box : {CropBox{0, 0, size.width, size.height}, inner, corner})
                        BOOST_REQUIRE((decode_at_scale_1(decoder, box).pixels == reference::crop(full, box).pixels));
                }
    }
}

BOOST_AUTO_TEST_CASE(the_backends_give_the_same_bytes_and_a_flip_is_the_mirror_image) {
    JpegDecoder library{JpegBackend::library}, own{JpegBackend::own};
    for (const auto& [name, kind] : kinds) {
        const ImageSize size{333, 251};
        const auto file = test::jpeg_file(size, kind);
        library.open(file);
        own.open(file);
        BOOST_TEST((library.size() == own.size()));
        for (std::uint64_t index = 0; index < 8; ++index) {
            CounterRng random{9, 0, index};
            const CropBox box = random_resized_crop(size, {}, random);
            std::vector<float> one(3 * 64 * 64), other(one.size()), flipped(one.size());
            library.decode(box, {64, 64}, false, ResizeFilter::antialias, {{}, one.data()});
            own.decode(box, {64, 64}, false, ResizeFilter::antialias, {{}, other.data()});
            own.decode(box, {64, 64}, true, ResizeFilter::antialias, {{}, flipped.data()});
            for (std::size_t row = 0; row < flipped.size(); row += 64)
                std::reverse(flipped.begin() + static_cast<std::ptrdiff_t>(row),
                             flipped.begin() + static_cast<std::ptrdiff_t>(row) + 64);
            BOOST_TEST_CONTEXT(name << " crop " << index) {
                BOOST_TEST((one == other));
                BOOST_TEST((one == flipped));
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
