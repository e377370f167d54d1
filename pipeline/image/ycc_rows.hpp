#pragma once
#include "pipeline/image/pixel_kernels.hpp"
#include "pipeline/image/pixels/ycc_planes.hpp"

#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// Converts planes to rows of RGB, bit for bit as libjpeg's fancy upsampling and colour conversion do.
class YccRows {
public:
    /// `planes` must hold what `crop` needs and outlive this object. Images narrower than 5 pixels must be s444 or
    /// gray: libjpeg does not interpolate their chroma.
    YccRows(const YccPlanes& planes, CropBox crop, const PixelKernels& kernels) noexcept;

    /// Bytes between the R, G and B planes of a row: its pixels, plus one if the crop begins at an odd column, rounded
    /// up to 64.
    [[nodiscard]] std::size_t plane_stride() const noexcept { return stride_; }
    /// Column of each plane of a row at which the crop begins: 0 or 1.
    [[nodiscard]] std::size_t skip() const noexcept { return crop_.x % 2; }
    /// 16-bit words of scratch that make() needs.
    [[nodiscard]] std::size_t scratch_words() const noexcept { return 4 * sums_stride(); }

    /// Writes the crop's rows [begin, end), counted from its top: 3 * plane_stride() bytes each, `stride` bytes apart.
    void make(std::uint32_t begin, std::uint32_t end, std::int16_t* scratch, std::uint8_t* rgb,
              std::size_t stride) const noexcept;

private:
    [[nodiscard]] std::size_t sums_stride() const noexcept { return (pairs_ + 31) / 32 * 32 + 96; }
    void sums(const PlaneView& plane, std::uint32_t y, std::int16_t* sums) const noexcept;
    void unsampled(std::uint32_t y, std::uint8_t* rgb) const noexcept;

    const YccPlanes& planes_;
    CropBox crop_;
    const PixelKernels& kernels_;
    std::size_t pairs_;   ///< pairs of pixels of a row, from an even column on
    std::size_t stride_;
};

}   // namespace drawpoint
