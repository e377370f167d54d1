#include "pipeline/image/check_crop.hpp"

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace drawpoint {
namespace {

std::string text(std::uint32_t width, std::uint32_t height) {
    return std::to_string(width) + 'x' + std::to_string(height);
}

}   // namespace

void check_crop(CropBox crop, ImageSize image) {
    if (crop.width == 0 || crop.height == 0)
        throw std::invalid_argument("crop must be at least 1x1, got " + text(crop.width, crop.height));
    if (std::uint64_t{crop.x} + crop.width > image.width || std::uint64_t{crop.y} + crop.height > image.height)
        throw std::invalid_argument("crop " + text(crop.width, crop.height) + " at (" + std::to_string(crop.x) + ", " +
                                    std::to_string(crop.y) + ") leaves the image of " +
                                    text(image.width, image.height));
}

void check_target(ImageSize target, const ChannelNormalization& normalization) {
    if (target.width == 0 || target.height == 0)
        throw std::invalid_argument("target size must be at least 1x1, got " + text(target.width, target.height));
    for (const float deviation : normalization.standard_deviation)
        if (!(std::abs(deviation) > 0))
            throw std::invalid_argument("standard_deviation must not be 0, got " + std::to_string(deviation));
}

}   // namespace drawpoint
