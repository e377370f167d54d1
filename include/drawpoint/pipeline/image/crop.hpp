#pragma once
#include <drawpoint/pipeline/image/pixels/image.hpp>
#include <drawpoint/pipeline/rng.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <stdexcept>

namespace drawpoint {

/// Limits of the crops that random_resized_crop() draws.
struct RandomCropRanges {
    double scale_min = 0.08, scale_max = 1.0;              ///< share of the image's area, 0 < min <= max
    double ratio_min = 3.0 / 4.0, ratio_max = 4.0 / 3.0;   ///< width / height, 0 < min <= max
};

/// The largest crop in the middle of the image whose width / height lies within the ranges' ratios. The image must not
/// be empty. Pure, O(1).
inline CropBox centre_crop_within_ratio(ImageSize image, const RandomCropRanges& ranges) {
    const double ratio = static_cast<double>(image.width) / image.height;
    std::uint32_t width = image.width, height = image.height;
    if (ratio < ranges.ratio_min)
        height = static_cast<std::uint32_t>(std::nearbyint(width / ranges.ratio_min));
    else if (ratio > ranges.ratio_max)
        width = static_cast<std::uint32_t>(std::nearbyint(height * ranges.ratio_max));
    width = std::clamp(width, 1u, image.width);
    height = std::clamp(height, 1u, image.height);
    return {(image.width - width) / 2, (image.height - height) / 2, width, height};
}

/// A random crop by torchvision's rule: area and log aspect ratio are uniform; after ten draws that do not fit, the
/// centre crop. `uniform` is called without arguments and returns doubles in [0, 1). Otherwise pure, O(1), never
/// allocates. Throws std::invalid_argument for an empty image or ranges that are not 0 < min <= max. Source:
/// torchvision RandomResizedCrop.get_params.
template <class Uniform>
    requires requires(Uniform& uniform) {
        { uniform() } -> std::convertible_to<double>;
    }
CropBox random_resized_crop(ImageSize image, const RandomCropRanges& ranges, Uniform&& uniform) {
    if (image.width == 0 || image.height == 0)
        throw std::invalid_argument("random_resized_crop: the image is empty");
    if (!(ranges.scale_min > 0 && ranges.scale_min <= ranges.scale_max))
        throw std::invalid_argument("random_resized_crop: scale must be 0 < min <= max");
    if (!(ranges.ratio_min > 0 && ranges.ratio_min <= ranges.ratio_max))
        throw std::invalid_argument("random_resized_crop: ratio must be 0 < min <= max");
    const double area = static_cast<double>(image.width) * image.height;
    const double log_min = std::log(ranges.ratio_min), log_max = std::log(ranges.ratio_max);
    for (int attempt = 0; attempt < 10; ++attempt) {
        const double target_area = area * (ranges.scale_min + (ranges.scale_max - ranges.scale_min) * uniform());
        const double aspect = std::exp(log_min + (log_max - log_min) * uniform());
        const double width = std::nearbyint(std::sqrt(target_area * aspect));
        const double height = std::nearbyint(std::sqrt(target_area / aspect));
        if (width < 1 || height < 1 || width > image.width || height > image.height)
            continue;
        const auto y = static_cast<std::uint32_t>((image.height - height + 1) * uniform());
        const auto x = static_cast<std::uint32_t>((image.width - width + 1) * uniform());
        return {x, y, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)};
    }
    return centre_crop_within_ratio(image, ranges);
}

/// The same with the sample's own random numbers.
inline CropBox random_resized_crop(ImageSize image, const RandomCropRanges& ranges, CounterRng& random) {
    return random_resized_crop(image, ranges, [&random] { return random.uniform(); });
}

}   // namespace drawpoint
