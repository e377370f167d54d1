#pragma once
// Deterministic pictures, and JPEG files of every kind that the decoder must support.
#include <drawpoint/pipeline/image/pixels/image.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace drawpoint::test {

/// How a JPEG file of a test is encoded.
struct JpegKind {
    int components = 3;           ///< 1 gray, 3 YCbCr, 4 CMYK
    int luma_h = 2, luma_v = 2;   ///< luma sampling factors: 2x2 is 4:2:0, 2x1 4:2:2, 1x1 4:4:4
    int quality = 90;
    bool progressive = false;
    int restart_rows = 0;   ///< a restart marker after this many rows of blocks; 0: none
    bool ycck = false;      ///< 4 components stored as YCCK
    bool arithmetic = false;
    /// number of scans of a progressive file without successive approximation; 0: libjpeg's default script
    int scans = 0;
};

/// Gradients, noise and hard edges; a pure function of the arguments. `components` interleaved bytes per pixel.
std::vector<std::uint8_t> picture(ImageSize size, int components, std::uint64_t seed);

/// A JPEG file of picture().
std::vector<std::byte> jpeg_file(ImageSize size, const JpegKind& kind = {}, std::uint64_t seed = 1);

/// A JPEG file of the given pixels.
std::vector<std::byte> encode(const std::vector<std::uint8_t>& pixels, ImageSize size, const JpegKind& kind);

}   // namespace drawpoint::test
