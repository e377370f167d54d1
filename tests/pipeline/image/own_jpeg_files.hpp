#pragma once
// JPEG files of the kinds that our decoder accepts, and of some that it does not.
#include <drawpoint/pipeline/image/pixels/image.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace drawpoint::test {

/// Which Huffman codes a file has.
enum class Codes : std::uint8_t {
    standard,
    optimised,
    flat,      ///< nearly all with 8 bits
    longest,   ///< the usual symbols have codes of up to 16 bits, the rarest have the shortest
    padded     ///< includes symbols that no baseline file needs: values of 15 bits
};

/// How an own_jpeg_file() is written.
struct OwnJpegKind {
    int components = 3, across = 2, down = 2, quality = 90;
    Codes codes = Codes::standard;
    unsigned restart_interval = 0;   ///< MCUs
    double noise = 0.25;             ///< 0: flat areas and gradients … 1: only noise
};

std::vector<std::byte> own_jpeg_file(ImageSize size, const OwnJpegKind& kind, std::uint64_t seed);

}   // namespace drawpoint::test
