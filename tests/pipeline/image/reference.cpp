#include "pipeline/image/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include <jpeglib.h>

namespace drawpoint::reference {
namespace {

struct Weights {
    int first = 0;
    std::vector<int> values;
};

Weights pillow_weights(int input, int output, int o, ResizeFilter filter) {
    const double scale = static_cast<double>(input) / output;
    const double support = filter == ResizeFilter::antialias ? std::max(scale, 1.0) : 1.0;
    const double centre = (o + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - support + 0.5));
    const int end = std::min(input, static_cast<int>(centre + support + 0.5));
    std::vector<double> exact;
    double sum = 0;
    for (int p = first; p < end; ++p) {
        const double distance = std::abs((p - centre + 0.5) / support);
        exact.push_back(distance < 1 ? 1 - distance : 0.0);
        sum += exact.back();
    }
    Weights weights{first, {}};
    for (const double weight : exact)
        weights.values.push_back(static_cast<int>(weight / sum * (1 << 22) + 0.5));
    return weights;
}

std::uint8_t to_byte(std::int64_t sum) {
    return static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> 22, 0, 255));
}

void fail(j_common_ptr info) {
    char message[JMSG_LENGTH_MAX];
    info->err->format_message(info, message);
    throw std::runtime_error(message);   // this ends the test program
}

}   // namespace

Rgb decode(std::span<const std::byte> file) {
    jpeg_decompress_struct info{};
    jpeg_error_mgr errors{};
    info.err = jpeg_std_error(&errors);
    errors.error_exit = fail;
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info, TRUE);
    info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info);
    const auto components = static_cast<std::size_t>(info.output_components);
    Rgb image{{info.output_width, info.output_height}, {}};
    std::vector<std::uint8_t> row(components * info.output_width);
    while (info.output_scanline < info.output_height) {
        JSAMPROW pointer = row.data();
        jpeg_read_scanlines(&info, &pointer, 1);
        for (std::size_t x = 0; x < info.output_width; ++x)
            for (std::size_t c = 0; c < 3; ++c) {
                std::uint8_t value = row[components * x + c];
                if (components == 4)   // inverted: the stored values are the remaining light
                    value = static_cast<std::uint8_t>(std::lround(value * row[4 * x + 3] / 255.0));
                image.pixels.push_back(value);
            }
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return image;
}

Rgb colors(const YccPlanes& planes) {
    const auto width = static_cast<int>(planes.image.width), height = static_cast<int>(planes.image.height);
    const auto sample = [](const PlaneView& plane, int x, int y, int right, int bottom) {
        return int{plane.samples[static_cast<std::size_t>(std::clamp(y, 0, bottom - 1)) * plane.stride +
                                 static_cast<std::size_t>(std::clamp(x, 0, right - 1))]};
    };
    const int half_width = (width + 1) / 2, half_height = (height + 1) / 2;
    const auto chroma = [&](const PlaneView& plane, int x, int y) {
        const int beside = x / 2 + (x % 2 == 0 ? -1 : 1), above = y / 2 + (y % 2 == 0 ? -1 : 1);
        if (planes.sampling == ChromaSampling::s444)
            return sample(plane, x, y, width, height);
        if (planes.sampling == ChromaSampling::s422)
            return (3 * sample(plane, x / 2, y, half_width, height) + sample(plane, beside, y, half_width, height) + 1 +
                    x % 2) >>
                   2;
        const auto column = [&](int at) {
            return 3 * sample(plane, at, y / 2, half_width, half_height) +
                   sample(plane, at, above, half_width, half_height);
        };
        return (3 * column(x / 2) + column(beside) + 8 - x % 2) >> 4;
    };
    Rgb image{planes.image, {}};
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            const int luma = sample(planes.luma, x, y, width, height);
            const bool gray = planes.sampling == ChromaSampling::gray;
            const int cb = gray ? 0 : chroma(planes.blue, x, y) - 128, cr = gray ? 0 : chroma(planes.red, x, y) - 128;
            // the factors 1.402, 0.34414, 0.71414 and 1.772 with 16 fractional bits
            for (const int value :
                 {luma + ((91881 * cr + 32768) >> 16), luma + ((-22554 * cb - 46802 * cr + 32768) >> 16),
                  luma + ((116130 * cb + 32768) >> 16)})
                image.pixels.push_back(static_cast<std::uint8_t>(std::clamp(value, 0, 255)));
        }
    return image;
}

Rgb crop(const Rgb& image, CropBox box) {
    Rgb part{{box.width, box.height}, {}};
    for (std::size_t y = box.y; y < std::size_t{box.y} + box.height; ++y) {
        const auto begin = image.pixels.begin() + static_cast<std::ptrdiff_t>((y * image.size.width + box.x) * 3);
        part.pixels.insert(part.pixels.end(), begin, begin + static_cast<std::ptrdiff_t>(box.width) * 3);
    }
    return part;
}

Rgb resize(const Rgb& image, ImageSize target, ResizeFilter filter) {
    Rgb narrow{{target.width, image.size.height}, {}};
    narrow.pixels.resize(std::size_t{narrow.size.width} * narrow.size.height * 3);
    for (std::uint32_t x = 0; x < target.width; ++x) {
        const Weights weights = pillow_weights(static_cast<int>(image.size.width), static_cast<int>(target.width),
                                               static_cast<int>(x), filter);
        for (std::size_t y = 0; y < image.size.height; ++y)
            for (std::size_t c = 0; c < 3; ++c) {
                std::int64_t sum = 1 << 21;
                for (std::size_t tap = 0; tap < weights.values.size(); ++tap)
                    sum += std::int64_t{weights.values[tap]} *
                           image.pixels[(y * image.size.width + static_cast<std::size_t>(weights.first) + tap) * 3 + c];
                narrow.pixels[(y * target.width + x) * 3 + c] = to_byte(sum);
            }
    }
    Rgb result{target, {}};
    result.pixels.resize(std::size_t{target.width} * target.height * 3);
    const std::size_t row = std::size_t{target.width} * 3;
    for (std::uint32_t y = 0; y < target.height; ++y) {
        const Weights weights = pillow_weights(static_cast<int>(image.size.height), static_cast<int>(target.height),
                                               static_cast<int>(y), filter);
        for (std::size_t i = 0; i < row; ++i) {
            std::int64_t sum = 1 << 21;
            for (std::size_t tap = 0; tap < weights.values.size(); ++tap)
                sum += std::int64_t{weights.values[tap]} *
                       narrow.pixels[(static_cast<std::size_t>(weights.first) + tap) * row + i];
            result.pixels[y * row + i] = to_byte(sum);
        }
    }
    return result;
}

Rgb mirror(const Rgb& image) {
    Rgb result = image;
    for (std::size_t y = 0; y < image.size.height; ++y)
        for (std::size_t x = 0; x < image.size.width; ++x)
            for (std::size_t c = 0; c < 3; ++c)
                result.pixels[(y * image.size.width + x) * 3 + c] =
                    image.pixels[(y * image.size.width + image.size.width - 1 - x) * 3 + c];
    return result;
}

Difference compare(const std::vector<float>& planar, const Rgb& image) {
    const std::size_t plane = std::size_t{image.size.width} * image.size.height;
    if (planar.size() != 3 * plane)
        throw std::logic_error("compare: sizes differ");
    Difference difference;
    for (std::size_t i = 0; i < plane; ++i)
        for (std::size_t c = 0; c < 3; ++c) {
            const double levels = std::abs(planar[c * plane + i] * 255.0 - image.pixels[3 * i + c]);
            difference.largest = std::max(difference.largest, levels);
            difference.mean += levels / static_cast<double>(3 * plane);
        }
    return difference;
}

}   // namespace drawpoint::reference
