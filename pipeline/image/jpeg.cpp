#include <drawpoint/pipeline/image/jpeg.hpp>

#include "pipeline/image/check_crop.hpp"
#include "pipeline/image/jpeg_encoder.hpp"
#include "pipeline/image/libjpeg.hpp"
#include "pipeline/image/own_jpeg/own_jpeg.hpp"
#include "pipeline/image/resample.hpp"
#include "pipeline/image/pixels/scratch_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

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
    throw ImageError(kind + ("byte " + std::to_string(failure.at) + ": ") + failure.message);
}

// A crop may end above the place where a file was cut, so the decoder would not notice. Only what follows the first
// scan's header counts: the header may hold a thumbnail with an end marker of its own.
bool has_end_marker(std::span<const std::byte> scan) {
    for (std::size_t at = scan.size(); at-- > 1;)
        if (scan[at] == std::byte{0xD9} && scan[at - 1] == std::byte{0xFF})
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

// The library takes two columns of chroma as they are; from this width on there are more.
constexpr std::uint32_t least_interpolated = 5;

// How the file's planes become pixels, where our own code does that to the last bit as the library.
std::optional<ChromaSampling> sampling_of(const jpeg_decompress_struct& info) {
    const auto factors = [&info](int c, int h, int v) {
        return info.comp_info[c].h_samp_factor == h && info.comp_info[c].v_samp_factor == v;
    };
    if (info.jpeg_color_space == JCS_GRAYSCALE && info.num_components == 1 && factors(0, 1, 1))
        return ChromaSampling::gray;
    if (info.jpeg_color_space != JCS_YCbCr || info.num_components != 3 || !factors(1, 1, 1) || !factors(2, 1, 1))
        return std::nullopt;
    if (factors(0, 1, 1))
        return ChromaSampling::s444;
    const bool interpolated = info.image_width >= least_interpolated;
    if (interpolated && factors(0, 2, 1))
        return ChromaSampling::s422;
    if (interpolated && factors(0, 2, 2))
        return ChromaSampling::s420;
    return std::nullopt;
}

}   // namespace

struct JpegDecoder::State {
    /// Gives the library's memory back, also where the rest of a decoder cannot be made.
    struct Reader : JpegReader {
        Reader() : JpegReader{} {
            if (create_reader(*this))
                return;
            destroy_reader(*this);
            throw ImageError(std::string("libjpeg: ") + failure.message);
        }
        Reader(const Reader&) = delete;
        Reader& operator=(const Reader&) = delete;
        ~Reader() { destroy_reader(*this); }
    };

    explicit State(JpegBackend backend) {
        reader.restricts_columns = restricts_columns();
        size = {};
        if (backend != JpegBackend::library)
            own.emplace();
    }

    void open(std::span<const std::byte> contents) {
        size = {};
        header_read = own_open = false;
        file = contents;
        if (file.empty())
            throw ImageError("not a JPEG: the file is empty");
        if (file.size() < 2 || file[0] != std::byte{0xFF} || file[1] != std::byte{0xD8})
            throw ImageError("not a JPEG: it does not begin with FF D8");
        own_open = own && own->open(file) && own->size().width >= least_interpolated && fits(own->size()) &&
                   has_end_marker(own->scan());
        if (own_open)
            size = own->size();
        else
            open_with_library();
    }

    void open_with_library() {
        size = {};
        if (!read_header(reader, file.data(), file.size()))
            refuse(reader.failure);
        const jpeg_decompress_struct& info = reader.info;
        const ImageSize claimed{info.image_width, info.image_height};
        if (!fits(claimed))
            throw ImageError("JPEG too large: " + text(claimed) + " pixels in " + std::to_string(file.size()) +
                             " bytes, the limit is " + std::to_string(most_pixels(file.size())));
        if (info.arith_code != 0)
            throw ImageError("unsupported JPEG: arithmetic coding");
        if (info.num_components != 1 && info.num_components != 3 && info.num_components != 4)
            throw ImageError("unsupported JPEG: " + std::to_string(info.num_components) + " components");
        const auto scan = file.last(info.src->bytes_in_buffer);
        if (!can_hold_its_blocks(info, scan.size()))
            throw ImageError("truncated JPEG: " + std::to_string(file.size()) + " bytes cannot hold " + text(claimed) +
                             " pixels");
        if (!has_end_marker(scan))
            throw ImageError("truncated JPEG: it ends at byte " + std::to_string(file.size()) +
                             " without an end marker");
        size = claimed;
        header_read = true;
    }

    [[nodiscard]] bool fits(ImageSize claimed) const noexcept {
        return std::uint64_t{claimed.width} * claimed.height <= most_pixels(file.size());
    }

    void check(CropBox crop) const {
        if (size == ImageSize{})
            throw std::logic_error("JpegDecoder: no image is open");
        check_crop(crop, size);
    }

    void need_header() {
        if (!header_read)
            open_with_library();
    }

    /// The crop's pixels inside a window that the library can decode on its own; valid until the next call.
    ImageView decode_window(CropBox crop) {
        need_header();
        header_read = false;
        // The library takes the window's borders for the image's when it interpolates colour: one more column on each
        // side makes the crop exact. Windows below 16 columns would make it interpolate differently.
        // Where it smooths blocks that lack their last bits, it looks further.
        const bool all = jpeg_has_multiple_scans(&reader.info) != 0;
        const std::uint32_t left =
            all ? 0 : std::min(crop.x - std::min(crop.x, 1u), size.width - std::min(size.width, 16u));
        const std::uint32_t right =
            all ? size.width : std::min(size.width, std::max(crop.x + crop.width + 1, left + 16));
        std::uint32_t x = left, width = right - left;
        if (!start_columns(reader, x, width))
            refuse(reader.failure);

        const bool cmyk = reader.info.output_components == 4;
        const auto stride_of = [cmyk](std::size_t columns) { return (columns * (cmyk ? 4 : 3) + 127) / 64 * 64; };
        const std::size_t stride = stride_of(width);
        std::uint8_t* rows = memory.get(reserved_bytes(stride * crop.height, stride_of(size.width) * size.height));
        if (!read_rows(reader, crop.y, crop.height, rows, stride))
            refuse(reader.failure);
        if (cmyk)
            for (std::uint32_t y = 0; y < crop.height; ++y)
                cmyk_to_rgb(rows + y * stride, width);
        return {rows + std::size_t{crop.x - x} * 3, {crop.width, crop.height}, stride};
    }

    /// What the crop needs of the planes; valid until the next call. Only after need_header().
    YccPlanes decode_planes(CropBox crop, ChromaSampling sampling) {
        const jpeg_decompress_struct& info = reader.info;
        // Chroma is interpolated from one more row and column on each side.
        const auto blocks_of = [](std::uint32_t begin, std::uint32_t count, std::uint32_t size_of_image, int factor) {
            const auto block = static_cast<std::uint32_t>(factor) * DCTSIZE;
            return std::pair{(begin - std::min(begin, 1u)) / block,
                             (std::min(size_of_image, begin + count + 1) + block - 1) / block};
        };
        const auto [top, bottom] = blocks_of(crop.y, crop.height, size.height, info.max_v_samp_factor);
        const auto [left, right] = blocks_of(crop.x, crop.width, size.width, info.max_h_samp_factor);
        JpegBlocks blocks{top, bottom, left, right};
        const auto block_rows =
            blocks_of(0, size.height, size.height, info.max_v_samp_factor).second;   // of the whole image
        std::size_t offsets[4] = {}, strides[3] = {}, whole = row_padding;
        std::uint32_t widths[3] = {}, heights[3] = {};   // of a block: after the last row the components are gone
        for (int c = 0; c < info.num_components; ++c) {
            const jpeg_component_info& component = info.comp_info[c];
            strides[c] = plane_stride(std::size_t{component.width_in_blocks} * DCTSIZE);
            widths[c] = static_cast<std::uint32_t>(component.h_samp_factor) * DCTSIZE;
            heights[c] = static_cast<std::uint32_t>(component.v_samp_factor) * DCTSIZE;
            offsets[c + 1] = offsets[c] + strides[c] * (bottom - top) * heights[c];
            whole += strides[c] * block_rows * heights[c];
        }
        std::uint8_t* const samples = memory.get(reserved_bytes(offsets[info.num_components] + row_padding, whole));
        JpegPlane planes[3];
        for (std::size_t c = 0; c < 3; ++c)
            planes[c] = {samples + offsets[c], strides[c]};
        header_read = false;
        if (!read_planes(reader, blocks, planes))
            refuse(reader.failure);
        const auto view = [&](std::size_t c) {
            return PlaneView{planes[c].samples, planes[c].stride, blocks.column_begin * widths[c],
                             blocks.row_begin * heights[c]};
        };
        if (sampling == ChromaSampling::gray)
            return {sampling, size, view(0), {}, {}};
        return {sampling, size, view(0), view(1), view(2)};
    }

    /// What the crop needs of the planes, decoded by us or by the library, if our own code makes pixels of them.
    std::optional<YccPlanes> planes(CropBox crop) {
        if (YccPlanes planes; own_open && own->decode_planes(crop, planes))
            return planes;
        own_open = false;
        need_header();
        if (const auto sampling = sampling_of(reader.info))
            return decode_planes(crop, *sampling);
        return std::nullopt;
    }

    /// Whether the library found at run time restricts columns as the one that was compiled for: the same samples, with
    /// and without.
    bool restricts_columns() try {
        constexpr ImageSize pattern{80, 32};
        std::vector<std::uint8_t> pixels;
        for (std::uint32_t i = 0; i < 3 * pattern.width * pattern.height; ++i)
            pixels.push_back(static_cast<std::uint8_t>(i * i * 31 >> 7));
        const std::vector<std::byte> picture =
            encode_jpeg({pixels.data(), pattern, std::size_t{3} * pattern.width}, 90);
        constexpr CropBox crop{40, 17, 20, 10};
        std::vector<std::uint8_t> samples[2];
        for (const bool restricted : {false, true}) {
            reader.restricts_columns = restricted;
            open(picture);
            need_header();
            const YccPlanes planes = decode_planes(crop, ChromaSampling::s420);
            if (restricted && planes.luma.x == 0)
                return false;
            for (std::uint32_t y = crop.y; y < crop.y + crop.height; ++y)
                for (std::uint32_t x = crop.x; x < crop.x + crop.width; ++x)
                    for (const auto& [plane, shift] : {std::pair{planes.luma, 0u}, {planes.blue, 1u}, {planes.red, 1u}})
                        samples[restricted].push_back(
                            plane.samples[((y >> shift) - plane.y) * plane.stride + ((x >> shift) - plane.x)]);
        }
        return samples[0] == samples[1];
    } catch (const ImageError&) {
        return false;
    }

    // 64 bytes can be read beyond every row. Rows a multiple of 1024 bytes apart would share the sets of the cache.
    static std::size_t plane_stride(std::size_t samples) {
        const std::size_t stride = (samples + 127) / 64 * 64;
        return stride % 1024 == 0 ? stride + 64 : stride;
    }

    Reader reader;
    std::optional<OwnJpegDecoder> own;
    std::span<const std::byte> file;
    ImageSize size;
    bool header_read = false;   // by the library, and not used up yet
    bool own_open = false;
    ScratchBuffer<std::uint8_t, std::size_t{8} << 20> memory;
    ResizeScratch scratch;
};

JpegDecoder::JpegDecoder(JpegBackend backend) : state_{std::make_unique<State>(backend)} {}
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

ImageSize JpegDecoder::size() const noexcept { return state_->size; }

void JpegDecoder::open(std::span<const std::byte> file) { state_->open(file); }

void JpegDecoder::decode(CropBox crop, ImageSize target, bool flip, ResizeFilter filter, const PlanarOutput& out) {
    State& state = *state_;
    check_target(target, out.normalization());
    state.check(crop);
    if (const auto planes = state.planes(crop))
        return resize_normalize(*planes, crop, target, flip, filter, out, state.scratch.buffers());
    const ImageView window = state.decode_window(crop);
    resize_normalize(window, state.size, {0, 0, crop.width, crop.height}, target, flip, filter, out,
                     state.scratch.buffers());
}

void JpegDecoder::decode_rgb(CropBox crop, std::uint8_t* rgb_out) {
    state_->check(crop);
    if (const auto planes = state_->planes(crop))
        return write_rgb(*planes, crop, state_->scratch.buffers(), rgb_out);
    const ImageView window = state_->decode_window(crop);
    const std::size_t bytes = std::size_t{crop.width} * 3;
    for (std::uint32_t y = 0; y < crop.height; ++y)
        std::memcpy(rgb_out + y * bytes, window.pixels + y * window.stride, bytes);
}

}   // namespace drawpoint
