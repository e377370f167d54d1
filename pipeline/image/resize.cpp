#include "drawpoint/pipeline/image/resize.hpp"

#include "pipeline/image/check_crop.hpp"
#include "pipeline/image/resample.hpp"

#include <algorithm>

namespace drawpoint {

ResizeScratch::ResizeScratch() : buffers_{std::make_unique<ResizeBuffers>()} {}
ResizeScratch::~ResizeScratch() = default;
ResizeScratch::ResizeScratch(ResizeScratch&&) noexcept = default;
ResizeScratch& ResizeScratch::operator=(ResizeScratch&&) noexcept = default;

void resize_normalize(const ImageView& image, CropBox crop, ImageSize target, bool flip, ResizeFilter filter,
                      const ChannelNormalization& normalization, ResizeScratch& scratch, float* planar_out) {
    check_crop(crop, image.size);
    check_target(target, normalization);
    ResizeBuffers& buffers = scratch.buffers();
    AffineNormalization affine;
    for (std::size_t c = 0; c < 3; ++c) {
        const double deviation = normalization.standard_deviation[c];
        affine.scale[c] = static_cast<float>(1 / (255 * deviation));
        affine.bias[c] = static_cast<float>(-normalization.mean[c] / deviation);
    }
    const FilterTable& down = buffers.vertical;
    const FilterTable& across = buffers.horizontal;
    buffers.vertical.fill(crop.height, target.height, filter, false);
    buffers.horizontal.fill(crop.width, target.width, filter, flip);
    if (!across.wide)
        buffers.kernels->pack(across, buffers.packed);

    const std::size_t bytes = std::size_t{crop.width} * 3;
    std::uint8_t* row = buffers.row.get(bytes + row_padding);
    std::fill_n(row + bytes, row_padding, std::uint8_t{0});
    std::int32_t* sums = down.wide ? buffers.sums.get(bytes) : nullptr;
    const std::uint8_t* pixels = image.pixels + crop.y * image.stride + std::size_t{crop.x} * 3;
    const std::size_t plane = std::size_t{target.width} * target.height;

    // Rows first: the dearer pass then runs over target.height rows instead of crop.height.
    for (std::uint32_t y = 0; y < target.height; ++y) {
        const std::uint8_t* rows = pixels + down.first[y] * image.stride;
        const std::size_t weights = std::size_t{y} * down.stride;
        if (down.wide)
            vertical_wide(rows, image.stride, down.wider + weights, down.taps, bytes, sums, row);
        else
            buffers.kernels->vertical(rows, image.stride, down.narrow + weights, down.taps, bytes, row);
        float* red = planar_out + std::size_t{y} * target.width;
        if (across.wide)
            horizontal_wide(row, across, affine, red, plane);
        else
            buffers.kernels->horizontal(row, across, buffers.packed, affine, red, plane);
    }
}

}   // namespace drawpoint
