#pragma once
// References for the fast kernels, written for clarity: the library's full decode and Pillow's resize.
#include <drawpoint/pipeline/image/resize.hpp>
#include "pipeline/image/pixels/ycc_planes.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace drawpoint::reference {

struct Rgb {
    ImageSize size;
    std::vector<std::uint8_t> pixels;   ///< interleaved, rows without padding

    ImageView view() const { return {pixels.data(), size, std::size_t{size.width} * 3}; }
};

/// The whole image, decoded by libjpeg in one piece; CMYK is converted in double precision.
Rgb decode(std::span<const std::byte> file);

/// Applies libjpeg's fancy upsampling and colour conversion to whole planes, pixel by pixel.
Rgb colors(const YccPlanes& planes);

/// Cuts the crop out.
Rgb crop(const Rgb& image, CropBox box);

/// Pillow's resize of the whole image: horizontal first, 22-bit weights, 8 bits after each pass.
Rgb resize(const Rgb& image, ImageSize target, ResizeFilter filter);

/// Mirrors left to right.
Rgb mirror(const Rgb& image);

/// Largest and mean difference, in levels of 255, between planar floats made with ChannelNormalization::none() and
/// `image`.
struct Difference {
    double largest = 0, mean = 0;
};
Difference compare(const std::vector<float>& planar, const Rgb& image);

}   // namespace drawpoint::reference
