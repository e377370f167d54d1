#pragma once
#include <drawpoint/pipeline/image/pixels/image.hpp>
#include "pipeline/image/pixels/scratch_buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace drawpoint {

/// Decodes PNG files to RGB8, from the first to the last row of a crop. The values are those of Pillow's
/// convert("RGB"): gray is repeated, palettes are looked up, transparency is dropped, 16-bit colour keeps its upper
/// byte and 16-bit gray is clamped to 255. Gamma and colour profiles are ignored. One object per thread.
class PngReader {
public:
    /// Checks the file's chunks, every checksum and the end. O(bytes). Throws ImageError.
    void open(std::span<const std::byte> file);
    [[nodiscard]] ImageSize size() const noexcept { return size_; }
    /// The pixels of `crop`, which lies inside the image; valid until the next call. Throws ImageError.
    ImageView decode_window(CropBox crop);

private:
    std::span<const std::byte> file_;
    ImageSize size_;
    bool gray16_ = false, interlaced_ = false;
    ScratchBuffer<std::uint8_t, std::size_t{1} << 20> window_;
    ScratchBuffer<std::uint8_t, std::size_t{1} << 14> rows_;   // one row, or all of an interlaced image's
};

}   // namespace drawpoint
