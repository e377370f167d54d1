#pragma once
#include <drawpoint/pipeline/image/jpeg.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace drawpoint {

enum class ImageFormat : std::uint8_t { jpeg, png, webp };

/// The format by the file's first bytes. Throws ImageError naming what was found instead.
[[nodiscard]] ImageFormat image_format(std::span<const std::byte> file);

/// Decodes JPEG, PNG and WebP files from memory into the crop, size and layout that a sample needs, as `JpegDecoder`
/// does for JPEG. Transparency is dropped; palettes, gray and 16-bit samples become RGB8, as by Pillow's
/// convert("RGB"). One object per thread, movable. Once its scratch has grown it allocates nothing but what the codec
/// libraries allocate per image.
class ImageDecoder {
public:
    explicit ImageDecoder(JpegBackend backend = JpegBackend::automatic);
    ~ImageDecoder();
    ImageDecoder(ImageDecoder&&) noexcept;
    ImageDecoder& operator=(ImageDecoder&&) noexcept;

    /// As JpegDecoder::open(). `file` must outlive the decode calls that follow.
    void open(std::span<const std::byte> file);
    [[nodiscard]] ImageSize size() const noexcept;
    /// As JpegDecoder::decode().
    void decode(CropBox crop, ImageSize target, bool flip, ResizeFilter filter, const PlanarOutput& out);
    /// As JpegDecoder::decode_rgb().
    void decode_rgb(CropBox crop, std::uint8_t* rgb_out);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}   // namespace drawpoint
