#include "drawpoint/pipeline/image/jpeg.hpp"

#include "pipeline/image/check_crop.hpp"
#include "pipeline/image/libjpeg.hpp"
#include "pipeline/image/scratch_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include <jerror.h>

namespace drawpoint {
namespace {

std::string text(ImageSize size) { return std::to_string(size.width) + 'x' + std::to_string(size.height); }

[[noreturn]] void refuse(const JpegFailure& failure) {
    const char* kind = "damaged JPEG: ";
    switch (failure.code) {
    case JWRN_JPEG_EOF:
    case JERR_INPUT_EOF: kind = "truncated JPEG: "; break;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JpegFailure::too_many_scans: kind = "unsupported JPEG: "; break;
    case JERR_IMAGE_TOO_BIG: kind = "JPEG too large: "; break;
    case JERR_OUT_OF_MEMORY: kind = "JPEG: "; break;
    default: break;
    }
    throw ImageError(std::string(kind) + failure.message);
}

// A crop may end above the place where a file was cut, so the decoder would not notice. Only what follows the first
// scan's header counts: the header may hold a thumbnail with an end marker of its own.
bool has_end_marker(const std::byte* begin, const std::byte* end) {
    for (const std::byte* at = end - 1; at > begin; --at)
        if (*at == std::byte{0xD9} && at[-1] == std::byte{0xFF})
            return true;
    return false;
}

// Every block costs at least one bit of the file, so a small file cannot ask for much memory or time.
bool can_hold_its_blocks(const jpeg_decompress_struct& info, std::size_t bytes) {
    std::uint64_t blocks = 0;
    for (int c = 0; c < info.num_components; ++c)
        blocks += std::uint64_t{info.comp_info[c].width_in_blocks} * info.comp_info[c].height_in_blocks;
    return blocks <= std::uint64_t{bytes} * 8;
}

std::uint8_t multiply_255(unsigned a, unsigned b) {
    const unsigned product = a * b + 128;
    return static_cast<std::uint8_t>((product + (product >> 8)) >> 8);
}

// In place. CMYK files are taken as inverted (255 = no ink), as Adobe writes them and Pillow reads them.
void cmyk_to_rgb(std::uint8_t* row, std::uint32_t width) {
    for (std::uint32_t x = 0; x < width; ++x) {
        const std::uint8_t key = row[4 * x + 3];
        for (std::uint32_t c = 0; c < 3; ++c) {
            const auto ink = static_cast<std::uint8_t>(255 - row[4 * x + c]);
            row[3 * x + c] = static_cast<std::uint8_t>(key - multiply_255(ink, key));
        }
    }
}

}   // namespace

struct JpegDecoder::State {
    State() {
        if (!create_reader(reader))
            throw ImageError(std::string("libjpeg: ") + reader.failure.message);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { destroy_reader(reader); }

    void read_header_again() {
        if (size == ImageSize{})
            throw std::logic_error("JpegDecoder: no image is open");
        if (header_read)
            return;
        if (!read_header(reader, file.data(), file.size()))
            refuse(reader.failure);
        header_read = true;
    }

    /// The crop's pixels inside a window that the library can decode on its own; valid until the next call.
    ImageView decode_window(CropBox crop) {
        check_crop(crop, size);
        read_header_again();
        header_read = false;
        // The library takes the window's borders for the image's when it interpolates colour: one more column on each
        // side makes the crop exact. Windows below 16 columns would make it interpolate differently.
        const std::uint32_t left = std::min(crop.x - std::min(crop.x, 1u), size.width - std::min(size.width, 16u));
        const std::uint32_t right = std::min(size.width, std::max(crop.x + crop.width + 1, left + 16));
        std::uint32_t x = left, width = right - left;
        if (!start_columns(reader, x, width))
            refuse(reader.failure);

        const bool cmyk = reader.info.output_components == 4;
        const std::size_t row_bytes = std::size_t{width} * (cmyk ? 4 : 3);
        const std::size_t stride = (row_bytes + 127) / 64 * 64;
        std::uint8_t* rows = window.get(stride * crop.height);
        if (!read_rows(reader, crop.y, crop.height, rows, stride))
            refuse(reader.failure);
        if (cmyk)
            for (std::uint32_t y = 0; y < crop.height; ++y)
                cmyk_to_rgb(rows + y * stride, width);
        return {rows + std::size_t{crop.x - x} * 3, {crop.width, crop.height}, stride};
    }

    JpegReader reader{};
    std::span<const std::byte> file;
    ImageSize size;
    bool header_read = false;
    ScratchBuffer<std::uint8_t, std::size_t{8} << 20> window;
    ResizeScratch scratch;
};

JpegDecoder::JpegDecoder() : state_{std::make_unique<State>()} {}
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

ImageSize JpegDecoder::size() const noexcept { return state_->size; }

void JpegDecoder::open(std::span<const std::byte> file) {
    State& state = *state_;
    state.size = {};
    state.header_read = false;
    state.file = file;
    if (file.empty())
        throw ImageError("not a JPEG: the file is empty");
    if (file.size() < 2 || file[0] != std::byte{0xFF} || file[1] != std::byte{0xD8})
        throw ImageError("not a JPEG: it does not begin with FF D8");
    if (!read_header(state.reader, file.data(), file.size()))
        refuse(state.reader.failure);

    const jpeg_decompress_struct& info = state.reader.info;
    const ImageSize size{info.image_width, info.image_height};
    if (std::uint64_t{size.width} * size.height > max_jpeg_pixels)
        throw ImageError("JPEG too large: " + text(size) + " pixels, the limit is " + std::to_string(max_jpeg_pixels));
    if (info.arith_code != 0)
        throw ImageError("unsupported JPEG: arithmetic coding");
    if (info.num_components != 1 && info.num_components != 3 && info.num_components != 4)
        throw ImageError("unsupported JPEG: " + std::to_string(info.num_components) + " components");
    const std::size_t rest = info.src->bytes_in_buffer;
    if (!can_hold_its_blocks(info, rest))
        throw ImageError("truncated JPEG: " + std::to_string(file.size()) + " bytes cannot hold " + text(size) +
                         " pixels");
    if (!has_end_marker(file.data() + (file.size() - rest), file.data() + file.size()))
        throw ImageError("truncated JPEG: it has no end marker");
    state.size = size;
    state.header_read = true;
}

void JpegDecoder::decode(CropBox crop, ImageSize target, bool flip, ResizeFilter filter,
                         const ChannelNormalization& normalization, float* planar_out) {
    check_target(target, normalization);
    const ImageView window = state_->decode_window(crop);
    resize_normalize(window, {0, 0, crop.width, crop.height}, target, flip, filter, normalization, state_->scratch,
                     planar_out);
}

void JpegDecoder::decode_rgb(CropBox crop, std::uint8_t* rgb_out) {
    const ImageView window = state_->decode_window(crop);
    const std::size_t bytes = std::size_t{crop.width} * 3;
    for (std::uint32_t y = 0; y < crop.height; ++y)
        std::memcpy(rgb_out + y * bytes, window.pixels + y * window.stride, bytes);
}

}   // namespace drawpoint
