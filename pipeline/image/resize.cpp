#include <drawpoint/pipeline/image/resize.hpp>

#include "pipeline/image/check_crop.hpp"
#include "pipeline/image/resample.hpp"
#include "pipeline/image/ycc_rows.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace drawpoint {
namespace {

// Rows of RGB made at a time: they stay in the first-level cache until the vertical pass has read them.
constexpr std::uint32_t strip_rows = 32;
constexpr std::uint32_t few_rows = 8;   // where none is read twice

// Both passes over one output row after the other. Rows first: the dearer pass then runs over target.height rows
// instead of crop.height.
class Resampling {
public:
    Resampling(ImageSize whole, CropBox crop, ImageSize target, bool flip, ResizeFilter filter, const PlanarOutput& out,
               ResizeBuffers& buffers)
        : buffers_{buffers}, target_{target}, out_{out} {
        for (std::size_t c = 0; c < 3; ++c) {
            const double deviation = out.normalization().standard_deviation[c];
            affine_.scale[c] = static_cast<float>(1 / (255 * deviation));
            affine_.bias[c] = static_cast<float>(-out.normalization().mean[c] / deviation);
        }
        most_taps_ = buffers.vertical.reserve(whole.height, target.height, filter);
        buffers.packed.reserve(target.width, std::min(FilterTable::most_narrow_taps,
                                                      buffers.horizontal.reserve(whole.width, target.width, filter)));
        buffers.vertical.fill(crop.height, target.height, filter, false, FilterTable::vertical_bits);
        buffers.horizontal.fill(crop.width, target.width, filter, flip, FilterTable::horizontal_bits);
        if (!buffers.horizontal.wide)
            buffers.kernels->pack(buffers.horizontal, buffers.packed);
    }
    ~Resampling() { buffers_.kernels->finish(); }
    Resampling(const Resampling&) = delete;
    Resampling& operator=(const Resampling&) = delete;

    /// Of the vertical pass, over the crops of the whole image.
    [[nodiscard]] std::uint32_t most_taps() const noexcept { return most_taps_; }

    /// The weighted sum of the rows that output row `y` reads, of which `rows` is the first.
    void vertical(std::uint32_t y, const std::uint8_t* rows, std::size_t stride, std::size_t bytes, std::uint8_t* out) {
        const FilterTable& table = buffers_.vertical;
        const std::size_t weights = std::size_t{y} * table.stride;
        if (table.wide)
            return vertical_wide(rows, stride, table.wider + weights, table.taps, bytes, buffers_.sums.get(bytes), out);
        // Half the taps makes up for what cutting each product to 1/256 of a level loses on average. All of them count,
        // but those at the ends that weigh nothing need not be added.
        const auto rounding = static_cast<std::uint16_t>(128 + table.taps / 2);
        const std::uint16_t *first = table.narrow + weights, *end = first + table.taps;
        while (*first == 0)
            ++first, rows += stride;
        while (end[-1] == 0)
            --end;
        buffers_.kernels->vertical(rows, stride, first, static_cast<std::uint32_t>(end - first), rounding, bytes, out);
    }

    void horizontal(std::uint32_t y, const std::uint8_t* row, std::size_t plane) {
        const std::size_t at = std::size_t{y} * target_.width;
        const std::size_t out_plane = std::size_t{target_.width} * target_.height;
        if (out_.levels() != nullptr)
            horizontal(row, plane, LevelRows{out_.levels() + at, out_plane}, buffers_.kernels->horizontal_levels);
        else
            horizontal(row, plane, FloatRows{out_.values() + at, out_plane, affine_}, buffers_.kernels->horizontal);
    }

private:
    template <class Rows, class Kernel>
    void horizontal(const std::uint8_t* row, std::size_t plane, const Rows& out, Kernel kernel) {
        if (buffers_.horizontal.wide)
            horizontal_wide(row, plane, buffers_.horizontal, out);
        else
            kernel(row, plane, buffers_.horizontal, buffers_.packed, out);
    }

    ResizeBuffers& buffers_;
    ImageSize target_;
    const PlanarOutput& out_;
    std::uint32_t most_taps_ = 0;
    AffineNormalization affine_;
};

// The rows of the whole image: no crop's need more memory.
YccRows all_rows(const YccPlanes& planes, const PixelKernels& kernels) noexcept {
    return {planes, {0, 0, planes.image.width, planes.image.height}, kernels};
}

}   // namespace

ResizeScratch::ResizeScratch() : buffers_{std::make_unique<ResizeBuffers>()} {}
ResizeScratch::~ResizeScratch() = default;
ResizeScratch::ResizeScratch(ResizeScratch&&) noexcept = default;
ResizeScratch& ResizeScratch::operator=(ResizeScratch&&) noexcept = default;

void resize_normalize(const ImageView& image, CropBox crop, ImageSize target, bool flip, ResizeFilter filter,
                      const PlanarOutput& out, ResizeScratch& scratch) {
    resize_normalize(image, image.size, crop, target, flip, filter, out, scratch.buffers());
}

void resize_normalize(const ImageView& image, ImageSize whole, CropBox crop, ImageSize target, bool flip,
                      ResizeFilter filter, const PlanarOutput& out, ResizeBuffers& buffers) {
    check_crop(crop, image.size);
    check_target(target, out.normalization());
    Resampling resampling{whole, crop, target, flip, filter, out, buffers};
    const std::size_t bytes = std::size_t{crop.width} * 3, plane = (std::size_t{crop.width} + 63) / 64 * 64;
    const std::size_t widest = 3 * ((std::size_t{whole.width} + 63) / 64 * 64) + row_padding;
    std::uint8_t* const interleaved = buffers.interleaved.get(widest);
    std::uint8_t* const row = buffers.row.get(widest);
    if (resampling.most_taps() > FilterTable::most_narrow_taps)
        buffers.sums.get(widest);
    std::fill_n(interleaved + bytes, row_padding, std::uint8_t{0});
    std::fill_n(row, 3 * plane + row_padding, std::uint8_t{0});
    const std::uint8_t* const pixels = image.pixels + crop.y * image.stride + std::size_t{crop.x} * 3;
    for (std::uint32_t y = 0; y < target.height; ++y) {
        resampling.vertical(y, pixels + buffers.vertical.first[y] * image.stride, image.stride, bytes, interleaved);
        buffers.kernels->deinterleave(interleaved, crop.width, row, plane);
        resampling.horizontal(y, row, plane);
    }
}

void resize_normalize(const YccPlanes& planes, CropBox crop, ImageSize target, bool flip, ResizeFilter filter,
                      const PlanarOutput& out, ResizeBuffers& buffers) {
    check_crop(crop, planes.image);
    check_target(target, out.normalization());
    Resampling resampling{planes.image, crop, target, flip, filter, out, buffers};
    const YccRows rows{planes, crop, *buffers.kernels}, widest = all_rows(planes, *buffers.kernels);
    const FilterTable& down = buffers.vertical;
    const std::size_t plane = rows.plane_stride(), bytes = 3 * plane;
    const std::size_t stride = bytes % 1024 == 0 ? bytes + 64 : bytes;   // rows a multiple apart would share cache sets
    const auto strip_of = [](std::uint32_t height, std::uint32_t taps) {
        return std::min(height, std::max(strip_rows, 2 * taps));
    };
    const std::uint32_t most = strip_of(crop.height, down.taps);
    const std::size_t widest_bytes = 3 * widest.plane_stride() + 64;
    std::uint8_t* const strip = buffers.strip.get(
        reserved_bytes(most * stride + row_padding,
                       strip_of(planes.image.height, resampling.most_taps()) * widest_bytes + row_padding));
    std::uint8_t* const row = buffers.row.get(widest_bytes + row_padding);
    std::int16_t* const chroma = buffers.chroma.get(widest.scratch_words());
    if (resampling.most_taps() > FilterTable::most_narrow_taps)
        buffers.sums.get(widest_bytes);
    std::fill_n(row + bytes, row_padding, std::uint8_t{0});

    std::uint32_t begin = 0, end = 0;   // the rows of the crop that the strip holds
    for (std::uint32_t y = 0; y < target.height; ++y) {
        const std::uint32_t first = down.first[y];
        if (first + down.taps > end) {
            const std::uint32_t kept = end > first ? end - first : 0;
            if (kept > 0)
                std::memmove(strip, strip + (first - begin) * stride, kept * stride);
            begin = first;
            end = std::min(crop.height, begin + most);
            rows.make(begin + kept, end, chroma, strip + kept * stride, stride);
        }
        resampling.vertical(y, strip + (first - begin) * stride, stride, bytes, row);
        resampling.horizontal(y, row + rows.skip(), plane);
    }
}

void write_rgb(const YccPlanes& planes, CropBox crop, ResizeBuffers& buffers, std::uint8_t* rgb) {
    check_crop(crop, planes.image);
    const YccRows rows{planes, crop, *buffers.kernels}, widest = all_rows(planes, *buffers.kernels);
    const std::size_t stride = 3 * rows.plane_stride();
    std::uint8_t* const strip = buffers.strip.get(few_rows * 3 * widest.plane_stride() + row_padding);
    std::int16_t* const chroma = buffers.chroma.get(widest.scratch_words());
    for (std::uint32_t begin = 0; begin < crop.height; begin += few_rows) {
        const std::uint32_t end = std::min(crop.height, begin + few_rows);
        rows.make(begin, end, chroma, strip, stride);
        for (std::uint32_t y = begin; y < end; ++y, rgb += std::size_t{3} * crop.width)
            buffers.kernels->interleave(strip + (y - begin) * stride + rows.skip(), rows.plane_stride(), crop.width,
                                        rgb);
    }
}

}   // namespace drawpoint
