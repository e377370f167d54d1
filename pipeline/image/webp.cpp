#include "pipeline/image/webp.hpp"

#include <drawpoint/pipeline/image/jpeg.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include <webp/decode.h>

namespace drawpoint {
namespace {

constexpr std::size_t riff_bytes = 8;                      // "RIFF" and the size of what follows
constexpr std::size_t chunk_bytes = 8, first_chunk = 12;   // a type and a size; after "WEBP"

std::uint64_t little_endian(std::span<const std::byte> file, std::size_t at) {
    const auto byte = [&](std::size_t i) { return std::to_integer<std::uint64_t>(file[at + i]); };
    return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
}

/// Where the chunk with the pixels begins, or where the chunks end.
std::size_t pixels_at(std::span<const std::byte> file) {
    std::uint64_t at = first_chunk;
    const auto is = [&](const char* type) { return std::memcmp(file.data() + at, type, 4) == 0; };
    while (file.size() - at >= chunk_bytes && !is("VP8 ") && !is("VP8L"))
        at = std::min<std::uint64_t>(file.size(), at + chunk_bytes + (little_endian(file, at + 4) + 1) / 2 * 2);
    return at;
}

/// The library does not tell where it gave up: the chunk that it was decoding is as near as can be said.
[[noreturn]] void refuse(VP8StatusCode status, std::span<const std::byte> file) {
    const std::string place = "byte " + std::to_string(pixels_at(file)) + ": ";
    switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY: throw std::bad_alloc{};
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: throw ImageError("truncated WebP: " + place + "these pixels end too early");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        throw ImageError("unsupported WebP: " + place + "a feature libwebp does not know");
    default: throw ImageError("damaged WebP: " + place + "libwebp cannot decode this");
    }
}

/// Two sides of a window around [begin, begin + length): even, and with what colour interpolation looks at beyond it.
struct Range {
    std::uint32_t begin, end;
};
Range around(std::uint32_t begin, std::uint32_t length, std::uint32_t limit) {
    return {(begin - std::min(begin, 2u)) & ~1u, std::min(limit, begin + length + 2)};
}

}   // namespace

void WebpReader::open(std::span<const std::byte> file) {
    size_ = {};
    if (file.size() < riff_bytes + 4)
        throw ImageError("truncated WebP: it has " + std::to_string(file.size()) + " bytes");
    const std::uint64_t said = riff_bytes + little_endian(file, 4);
    if (said < first_chunk)
        throw ImageError("damaged WebP: byte 4: it says " + std::to_string(said) + " bytes");
    if (said > file.size())
        throw ImageError("truncated WebP: it says " + std::to_string(said) + " bytes, " + std::to_string(file.size()) +
                         " are there");
    file_ = file.first(said);
    WebPBitstreamFeatures features;
    const VP8StatusCode status =
        WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(file_.data()), file_.size(), &features);
    if (status != VP8_STATUS_OK)
        refuse(status, file_);
    if (features.has_animation != 0)
        throw ImageError("unsupported WebP: an animation");
    const ImageSize size{static_cast<std::uint32_t>(features.width), static_cast<std::uint32_t>(features.height)};
    if (std::uint64_t{size.width} * size.height > most_pixels(file_.size()))
        throw ImageError("WebP too large: " + std::to_string(size.width) + 'x' + std::to_string(size.height) +
                         " pixels in " + std::to_string(file_.size()) + " bytes, the limit is " +
                         std::to_string(most_pixels(file_.size())));
    size_ = size;
}

ImageView WebpReader::decode_window(CropBox crop) {
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0)
        throw ImageError("WebP: libwebp is of another version than its header");
    const Range across = around(crop.x, crop.width, size_.width), down = around(crop.y, crop.height, size_.height);
    const std::uint32_t width = across.end - across.begin, height = down.end - down.begin;
    config.options.use_cropping = 1;
    config.options.crop_left = static_cast<int>(across.begin);
    config.options.crop_top = static_cast<int>(down.begin);
    config.options.crop_width = static_cast<int>(width);
    config.options.crop_height = static_cast<int>(height);

    const auto stride_of = [](std::size_t columns) { return (columns * 3 + 127) / 64 * 64; };
    const std::size_t stride = stride_of(width);
    WebPDecBuffer& out = config.output;
    out.colorspace = MODE_RGB;
    out.is_external_memory = 1;
    out.u.RGBA = {window_.get(reserved_bytes(stride * height, stride_of(size_.width) * size_.height)),
                  static_cast<int>(stride), stride * height};
    const VP8StatusCode status = WebPDecode(reinterpret_cast<const std::uint8_t*>(file_.data()), file_.size(), &config);
    if (status != VP8_STATUS_OK)
        refuse(status, file_);
    return {out.u.RGBA.rgba + (crop.y - down.begin) * stride + std::size_t{3} * (crop.x - across.begin),
            {crop.width, crop.height},
            stride};
}

}   // namespace drawpoint
