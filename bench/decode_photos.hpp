#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include <drawpoint/pipeline/image/pixels/image.hpp>

namespace drawpoint::bench {

/// A JPEG file in memory, and the crop and flip of its sample.
struct Photo {
    std::vector<std::byte> file;
    CropBox crop;
    bool flip = false;
};

inline constexpr ImageSize decode_target{224, 224};

/// At most so many photographs of a folder of class folders, spread over all of it, with a RandomResizedCrop each.
[[nodiscard]] std::vector<Photo> load_photos(const std::filesystem::path& folder, std::size_t most);

}   // namespace drawpoint::bench
