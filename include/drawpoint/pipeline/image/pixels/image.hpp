#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace drawpoint {

/// Width and height in pixels.
struct ImageSize {
    std::uint32_t width = 0, height = 0;
    friend constexpr bool operator==(ImageSize, ImageSize) = default;
};

/// A rectangle of pixels; (x, y) is its upper left corner.
struct CropBox {
    std::uint32_t x = 0, y = 0, width = 0, height = 0;
    friend constexpr bool operator==(CropBox, CropBox) = default;
};

/// A view of RGB8 pixels that somebody else owns: interleaved, rows from top to bottom.
struct ImageView {
    const std::uint8_t* pixels = nullptr;
    ImageSize size;
    std::size_t stride = 0;   ///< bytes from one row to the next, at least 3 * width
};

/// An image that cannot be used: not a JPEG, damaged, truncated, unsupported or too large.
/// The message is one line and names no path, which the caller knows and adds.
class ImageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The largest image that is decoded from a file of so many bytes, in pixels: 178 million, but beyond 32 million no
/// more than 100 for each byte, since a few bytes can claim to be any image. A larger one is refused before any memory
/// is allocated.
[[nodiscard]] constexpr std::uint64_t most_pixels(std::uint64_t file_bytes) noexcept {
    return std::clamp<std::uint64_t>(100 * file_bytes, 32'000'000, 178'000'000);
}

}   // namespace drawpoint
