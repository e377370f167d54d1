#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <drawpoint/pipeline/image/pixels/image.hpp>

namespace drawpoint::bench {

/// A JPEG file in memory, and the crop and flip of its sample.
struct Photo {
    std::vector<std::byte> file;
    CropBox crop;
    bool flip = false;
};

/// What one stage of decoding costs.
struct Stage {
    std::string part, name;
    double us = 0;   ///< per image: the mean over images of the fastest round of each
};

/// Times the stages of both decoders on the 4:2:0 photographs among these, each stage by itself or as the difference
/// between two decodes; the last row of a part is the whole of it. Wall time of one thread.
std::vector<Stage> decode_stages(const std::vector<Photo>& photos, ImageSize target, int rounds);

}   // namespace drawpoint::bench
