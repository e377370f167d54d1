#include <drawpoint/pipeline/image/image_decoder.hpp>

#include "pipeline/image/check_crop.hpp"
#include "pipeline/image/png.hpp"
#include "pipeline/image/resample.hpp"
#include "pipeline/image/webp.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace drawpoint {
namespace {

bool has(std::span<const std::byte> file, std::size_t at, std::string_view bytes) {
    return file.size() >= at + bytes.size() && std::memcmp(file.data() + at, bytes.data(), bytes.size()) == 0;
}

std::string first_bytes(std::span<const std::byte> file) {
    std::string text;
    for (const std::byte byte : file.first(std::min<std::size_t>(file.size(), 4))) {
        constexpr const char* digits = "0123456789ABCDEF";
        text += text.empty() ? "" : " ";
        text += digits[std::to_integer<unsigned>(byte) >> 4];
        text += digits[std::to_integer<unsigned>(byte) & 15];
    }
    return text;
}

}   // namespace

ImageFormat image_format(std::span<const std::byte> file) {
    using namespace std::string_view_literals;
    if (has(file, 0, "\xFF\xD8"sv))
        return ImageFormat::jpeg;
    if (has(file, 0, "\x89PNG\r\n\x1A\n"sv))
        return ImageFormat::png;
    if (has(file, 0, "RIFF"sv) && has(file, 8, "WEBP"sv))
        return ImageFormat::webp;
    if (has(file, 0, "RIFF"sv))
        throw ImageError(file.size() < 12 ? "truncated WebP: it ends at byte " + std::to_string(file.size())
                                          : "not a JPEG, PNG or WebP: byte 8: a RIFF file of the kind " +
                                                first_bytes(file.subspan(8)) + ", a WebP's is 57 45 42 50");
    if (has(file, 0, "\x89PNG"sv))
        throw ImageError(file.size() < 8 ? "truncated PNG: it ends at byte " + std::to_string(file.size())
                                         : "damaged PNG: byte 4: its signature goes on with " +
                                               first_bytes(file.subspan(4)) + " in place of 0D 0A 1A 0A");
    throw ImageError("not a JPEG, PNG or WebP: " +
                     (file.empty() ? "the file is empty" : "it begins with " + first_bytes(file)));
}

struct ImageDecoder::State {
    explicit State(JpegBackend backend) : jpeg{backend} {}

    [[nodiscard]] ImageSize size() const noexcept {
        return !open                         ? ImageSize{}
               : format == ImageFormat::png  ? png.size()
               : format == ImageFormat::webp ? webp.size()
                                             : jpeg.size();
    }
    ImageView decode_window(CropBox crop) {
        if (!open)
            throw std::logic_error("ImageDecoder: no image is open");
        check_crop(crop, size());
        return format == ImageFormat::png ? png.decode_window(crop) : webp.decode_window(crop);
    }

    ImageFormat format = ImageFormat::jpeg;
    bool open = false;
    JpegDecoder jpeg;
    PngReader png;
    WebpReader webp;
    ResizeScratch scratch;
};

ImageDecoder::ImageDecoder(JpegBackend backend) : state_{std::make_unique<State>(backend)} {}
ImageDecoder::~ImageDecoder() = default;
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;

ImageSize ImageDecoder::size() const noexcept { return state_->size(); }

void ImageDecoder::open(std::span<const std::byte> file) {
    State& state = *state_;
    state.open = false;
    state.format = image_format(file);
    switch (state.format) {
    case ImageFormat::jpeg: state.jpeg.open(file); break;
    case ImageFormat::png: state.png.open(file); break;
    case ImageFormat::webp: state.webp.open(file); break;
    }
    state.open = true;
}

void ImageDecoder::decode(CropBox crop, ImageSize target, bool flip, ResizeFilter filter, const PlanarOutput& out) {
    if (state_->open && state_->format == ImageFormat::jpeg)
        return state_->jpeg.decode(crop, target, flip, filter, out);
    check_target(target, out.normalization());
    const ImageView window = state_->decode_window(crop);
    resize_normalize(window, state_->size(), {0, 0, crop.width, crop.height}, target, flip, filter, out,
                     state_->scratch.buffers());
}

void ImageDecoder::decode_rgb(CropBox crop, std::uint8_t* rgb_out) {
    if (state_->open && state_->format == ImageFormat::jpeg)
        return state_->jpeg.decode_rgb(crop, rgb_out);
    const ImageView window = state_->decode_window(crop);
    const std::size_t bytes = std::size_t{crop.width} * 3;
    for (std::uint32_t y = 0; y < crop.height; ++y)
        std::memcpy(rgb_out + y * bytes, window.pixels + y * window.stride, bytes);
}

}   // namespace drawpoint
