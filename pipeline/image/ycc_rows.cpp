#include "pipeline/image/ycc_rows.hpp"

#include <algorithm>
#include <cstring>

namespace drawpoint {
namespace {

const std::uint8_t* at(const PlaneView& plane, std::uint32_t x, std::uint32_t y) noexcept {
    return plane.samples + (y - plane.y) * plane.stride + (x - plane.x);
}

}   // namespace

YccRows::YccRows(const YccPlanes& planes, CropBox crop, const PixelKernels& kernels) noexcept
    : planes_{planes},
      crop_{crop},
      kernels_{kernels},
      pairs_{(std::size_t{crop.width} + crop.x % 2 + 1) / 2},
      stride_{(2 * pairs_ + 63) / 64 * 64} {}

// The sums of one chroma row from the crop's first column on. What lies beyond the plane's ends counts as its first and
// last sample; a sum beyond what the crop needs may be anything.
void YccRows::sums(const PlaneView& plane, std::uint32_t y, std::int16_t* sums) const noexcept {
    const std::uint32_t x = crop_.x / 2, last = (planes_.image.width + 1) / 2 - 1;
    const bool left = x > plane.x, right = x + pairs_ - 1 < last;
    if (planes_.sampling == ChromaSampling::s420) {
        const std::uint32_t nearer = y / 2, bottom = (planes_.image.height + 1) / 2 - 1;
        const std::uint32_t further = y % 2 == 0 ? nearer - std::min(nearer, 1u) : std::min(nearer + 1, bottom);
        const std::uint8_t *const near = at(plane, x, nearer), *const far = at(plane, x, further);
        kernels_.chroma_sums(near, far, pairs_ + right, sums);
        sums[-1] = left ? static_cast<std::int16_t>(3 * near[-1] + far[-1] - sum_centre) : sums[0];
    } else {
        const std::uint8_t* const samples = at(plane, x, y);
        kernels_.widen(samples, pairs_ + right, sums);
        sums[-1] = left ? static_cast<std::int16_t>(samples[-1] - widened_centre) : sums[0];
    }
    if (!right)
        sums[pairs_] = sums[pairs_ - 1];
}

// Gray, or chroma of every pixel.
void YccRows::unsampled(std::uint32_t y, std::uint8_t* rgb) const noexcept {
    if (planes_.sampling == ChromaSampling::gray) {
        for (std::size_t c = 0; c < 3; ++c)
            std::memcpy(rgb + c * stride_ + skip(), at(planes_.luma, crop_.x, y), crop_.width);
    } else {
        const std::uint32_t x = crop_.x - crop_.x % 2;
        kernels_.rgb_444(at(planes_.luma, x, y), at(planes_.blue, x, y), at(planes_.red, x, y), pairs_, rgb, stride_);
    }
}

void YccRows::make(std::uint32_t begin, std::uint32_t end, std::int16_t* scratch, std::uint8_t* rgb,
                   std::size_t stride) const noexcept {
    const auto kernel = planes_.sampling == ChromaSampling::s420   ? kernels_.rgb_420
                        : planes_.sampling == ChromaSampling::s422 ? kernels_.rgb_422
                                                                   : nullptr;
    const auto sums_of = [&](std::uint32_t y) { return scratch + 32 + (y % 2) * 2 * sums_stride(); };
    const auto make_sums = [&](std::uint32_t y) {
        sums(planes_.blue, crop_.y + y, sums_of(y));
        sums(planes_.red, crop_.y + y, sums_of(y) + sums_stride());
    };
    if (kernel != nullptr && begin < end)
        make_sums(begin);
    for (std::uint32_t y = begin; y < end; ++y, rgb += stride) {
        if (kernel == nullptr) {
            unsampled(crop_.y + y, rgb);
            continue;
        }
        // A row ahead: unaligned loads of what was stored just now would wait for the stores.
        if (y + 1 < end)
            make_sums(y + 1);
        kernel(at(planes_.luma, crop_.x - crop_.x % 2, crop_.y + y), sums_of(y), sums_of(y) + sums_stride(), pairs_,
               rgb, stride_);
    }
}

}   // namespace drawpoint
