#pragma once
#include <drawpoint/pipeline/image/pixels/image.hpp>

#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// How densely the two colour planes of a YCbCr image are sampled: as luma, at half its columns, or at half of both.
enum class ChromaSampling : std::uint8_t { gray, s444, s422, s420 };

/// Part of one plane of samples.
struct PlaneView {
    const std::uint8_t* samples = nullptr;   ///< readable up to 64 bytes beyond the end of every row
    std::size_t stride = 0;                  ///< bytes from row to row
    std::uint32_t x = 0, y = 0;              ///< position of `samples` in the whole plane
};

/// The decoded planes, not yet upsampled, of the part of an image that a crop needs: its own samples and, where the
/// plane has them, one more on each side. Samples beyond ceil(image / sampling) are the encoder's padding and must not
/// be used.
struct YccPlanes {
    ChromaSampling sampling = ChromaSampling::s420;
    ImageSize image;
    PlaneView luma, blue, red;   ///< Y, Cb, Cr; the latter two empty when gray
};

}   // namespace drawpoint
