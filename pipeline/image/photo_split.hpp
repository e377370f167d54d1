#pragma once
#include <drawpoint/pipeline/image/pixels/image.hpp>
#include <drawpoint/pipeline/rng.hpp>

namespace drawpoint {

/// Two parts of a photograph that share no pixel.
struct PhotoSplit {
    CropBox training, held_out;
};

/// Cuts off a band of about `share` of the photograph, at least as wide as a crop, along the side where the band is
/// smallest, or along the longer side if both bands are equal. The band lies at the end of that side, or at its
/// beginning if `at_begin`. Throws ImageError if a crop does not fit into both parts.
PhotoSplit split_photograph(ImageSize photograph, ImageSize crop, double share, bool at_begin);

/// A window of `region` with the shape of `crop`, between its size and the largest that fits into 0.7 of the region.
CropBox random_window(CropBox region, ImageSize crop, CounterRng& random);

}   // namespace drawpoint
