#pragma once
#include "pipeline/image/pixel_kernels.hpp"
#include "pipeline/image/ycc_planes.hpp"

#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// Makes rows of RGB from planes, to the last bit as libjpeg's fancy upsampling and colour conversion do.
class YccRows {
public:
    /// `planes` hold what `crop` needs and live as long as this. Images narrower than 5 pixels must be s444 or gray: libjpeg
    /// does not interpolate their chroma.
    YccRows(const YccPlanes& planes, CropBox crop, const PixelKernels& kernels) noexcept;

    /// Bytes from R to G to B of a row: its pixels, one more if the crop begins at an odd column, up to a multiple of 64.
    [[nodiscard]] std::size_t plane_stride() const noexcept { return stride_; }
    /// Where in each plane of a row the crop begins: 0 or 1.
    [[nodiscard]] std::size_t skip() const noexcept { return crop_.x % 2; }
    /// 16-bit words of scratch that make() needs.
    [[nodiscard]] std::size_t scratch_words() const noexcept { return 4 * sums_stride(); }

    /// The crop's rows [begin, end), 0 at its top: 3 * plane_stride() bytes each, the next `stride` bytes further.
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
