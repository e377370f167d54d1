#pragma once
#include <drawpoint/pipeline/image/pixels/image.hpp>
#include "pipeline/image/pixels/scratch_buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace drawpoint {

/// Decodes WebP files to RGB8, only as far as a crop needs, with libwebp's values; transparency is dropped. Animations
/// are refused. One object per thread.
class WebpReader {
public:
    /// Reads the header and checks that the file is whole. Throws ImageError.
    void open(std::span<const std::byte> file);
    [[nodiscard]] ImageSize size() const noexcept { return size_; }
    /// The pixels of `crop`, which lies inside the image; valid until the next call. Throws ImageError.
    ImageView decode_window(CropBox crop);

private:
    std::span<const std::byte> file_;
    ImageSize size_;
    ScratchBuffer<std::uint8_t, std::size_t{1} << 20> window_;
};

}   // namespace drawpoint
