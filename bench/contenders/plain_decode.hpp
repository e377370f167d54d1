#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/pipeline/image/resize.hpp>

#include "pipeline/image/libjpeg.hpp"

namespace drawpoint::bench {

/// Decodes as most programs do: libjpeg-turbo decodes the whole image to RGB, then Pillow's antialiased resize in plain
/// C++ (horizontal first, 22-bit weights, 8 bits in between), flip and normalise. Throws std::runtime_error for a
/// damaged file.
class PlainDecode {
public:
    PlainDecode();
    ~PlainDecode();
    PlainDecode(const PlainDecode&) = delete;
    PlainDecode& operator=(const PlainDecode&) = delete;

    /// Works like tjDecompress2() with a reused handle and buffer. The pixels are valid until the next call.
    ImageView whole(std::span<const std::byte> file);

    /// Decodes only the crop's window, with one more column on each side, to RGB.
    ImageView window(std::span<const std::byte> file, CropBox crop);

    /// Resizes the crop of an image that whole() returned.
    void resize(const ImageView& image, CropBox crop, ImageSize target, bool flip,
                const ChannelNormalization& normalization, float* planar_out);

private:
    struct Weights {
        std::vector<int> first, count, values;   // weights have `taps` values per output
        int taps = 0;
        void fill(std::uint32_t input, std::uint32_t output);
    };
    ImageView rows(std::uint32_t y, std::uint32_t height, std::uint32_t width);

    JpegReader reader_{};
    std::vector<std::uint8_t> pixels_, narrow_;
    std::vector<int> sums_;
    Weights across_, down_;
};

}   // namespace drawpoint::bench
