#pragma once

#include <cstdint>
#include <filesystem>

#include <drawpoint/pipeline/image/photo_crops.hpp>

namespace drawpoint::bench {

/// JPEG crops of generated pictures, for machines without photographs. The destructor removes them.
class TemporaryPhotos {
public:
    /// `count`: a multiple of 8.
    explicit TemporaryPhotos(std::uint32_t count, ImageSize = {500, 375});
    ~TemporaryPhotos();
    TemporaryPhotos(const TemporaryPhotos&) = delete;
    TemporaryPhotos& operator=(const TemporaryPhotos&) = delete;
    [[nodiscard]] std::filesystem::path folder() const { return folder_ / "crops/train"; }

private:
    std::filesystem::path folder_;
};

}   // namespace drawpoint::bench
