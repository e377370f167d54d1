#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <drawpoint/pipeline/image/image.hpp>

namespace drawpoint::bench {

/// A JPEG file in memory and what a sample takes of it.
struct Photo {
    std::vector<std::byte> file;
    CropBox crop;
    bool flip = false;
};

/// What a stage of decoding costs.
struct Stage {
    std::string part, name;
    double us = 0;   ///< per image: of each image the least of all rounds, then the mean
};

/// Times the stages of both decoders on those photographs that are 4:2:0, each stage alone or as the difference of two decodes
/// that differ in it; the last row of a part is all of it at once. Wall time of one thread.
std::vector<Stage> decode_stages(const std::vector<Photo>& photos, ImageSize target, int rounds);

}   // namespace drawpoint::bench
