#pragma once

#include <cstdint>
#include <filesystem>

namespace drawpoint::bench {

/// `count` JPEG crops of 500 x 375 cut out of generated pictures, for where no photographs are at hand. Removed at the end.
class TemporaryPhotos {
public:
    explicit TemporaryPhotos(std::uint32_t count);   ///< a multiple of 8
    ~TemporaryPhotos();
    TemporaryPhotos(const TemporaryPhotos&) = delete;
    TemporaryPhotos& operator=(const TemporaryPhotos&) = delete;
    [[nodiscard]] std::filesystem::path folder() const { return folder_ / "crops/train"; }

private:
    std::filesystem::path folder_;
};

}   // namespace drawpoint::bench
