#pragma once
#include <drawpoint/pipeline/image/resize.hpp>

namespace drawpoint {

/// Throws std::invalid_argument unless `crop` is at least one pixel and lies inside `image`.
void check_crop(CropBox crop, ImageSize image);

/// Throws std::invalid_argument unless `target` is at least one pixel and no standard deviation is 0.
void check_target(ImageSize target, const ChannelNormalization& normalization);

}   // namespace drawpoint
