#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include <drawpoint/pipeline/image/image_decoder.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>

namespace drawpoint::detail {

/// The decoder that a recipe asks for, with the calls of JpegDecoder.
class FileDecoder {
public:
    explicit FileDecoder(const DecodedImages::Decode& decode) : decoder_{made(decode)} {}
    void open(std::span<const std::byte> file) {
        std::visit([&](auto& decoder) { decoder.open(file); }, decoder_);
    }
    [[nodiscard]] ImageSize size() const noexcept {
        return std::visit([](const auto& decoder) { return decoder.size(); }, decoder_);
    }
    void decode(CropBox crop, ImageSize target, bool flip, ResizeFilter filter, const PlanarOutput& out) {
        std::visit([&](auto& decoder) { decoder.decode(crop, target, flip, filter, out); }, decoder_);
    }
    void decode_rgb(CropBox crop, std::uint8_t* rgb) {
        std::visit([&](auto& decoder) { decoder.decode_rgb(crop, rgb); }, decoder_);
    }

private:
    using Decoder = std::variant<JpegDecoder, ImageDecoder>;
    static Decoder made(const DecodedImages::Decode& decode) {
        if (const auto* const jpeg = std::get_if<DecodeJpeg>(&decode))
            return Decoder{std::in_place_type<JpegDecoder>, jpeg->backend};
        return Decoder{std::in_place_type<ImageDecoder>, std::get<DecodeImage>(decode).backend};
    }
    Decoder decoder_;
};

[[nodiscard]] inline CropBox whole(ImageSize size) noexcept { return {0, 0, size.width, size.height}; }
[[nodiscard]] constexpr std::size_t rgb_bytes(ImageSize size) noexcept {
    return std::size_t{3} * size.width * size.height;
}

/// Whether `bytes` is the size of an image of `size`; without overflow, which rgb_bytes() of an unchecked size may
/// have.
[[nodiscard]] constexpr bool is_rgb_of(ImageSize size, std::size_t bytes) noexcept {
    return bytes % 3 == 0 && std::uint64_t{size.width} * size.height == bytes / 3;
}

/// A buffer of at least `bytes`; it only grows.
inline std::uint8_t* grow(std::vector<std::uint8_t>& pixels, std::size_t bytes) {
    if (pixels.size() < bytes)
        pixels.resize(bytes);
    return pixels.data();
}

}   // namespace drawpoint::detail
