#pragma once
#include <drawpoint/pipeline/image/pixels/image.hpp>
#include "pipeline/image/pixels/ycc_planes.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace drawpoint {

/// Decodes common JPEG files (baseline, 8 bit, YCbCr or gray, one scan) to planes, in about half of libjpeg-turbo's
/// time. The planes equal the library's to the last bit (JDCT_ISLOW); unusual and damaged files are refused and left to
/// the library. One object per thread, movable. Never allocates once its scratch has grown.
class OwnJpegDecoder {
public:
    /// Instruction sets it may use: the best of the processor, or plain C++. The planes are the same.
    enum class Instructions : unsigned char { best, portable };

    explicit OwnJpegDecoder(Instructions instructions = Instructions::best);
    ~OwnJpegDecoder();
    OwnJpegDecoder(OwnJpegDecoder&&) noexcept;
    OwnJpegDecoder& operator=(OwnJpegDecoder&&) noexcept;

    /// Reads the header; true if this decoder supports the file. Costs about 1 µs, and about 20 µs where the Huffman
    /// tables differ from those of the previous file. `file` must outlive the decode calls that follow.
    [[nodiscard]] bool open(std::span<const std::byte> file) noexcept;

    /// Size of the opened image; 0x0 if none is open.
    [[nodiscard]] ImageSize size() const noexcept;

    /// The compressed data after the header, up to the end of the file: the bytes that libjpeg's `bytes_in_buffer`
    /// counts after jpeg_read_header().
    [[nodiscard]] std::span<const std::byte> scan() const noexcept;

    /// Decodes what `crop`, which lies inside the image, needs: its own samples and those of one more pixel on each
    /// side, within the image. The planes are valid until the next call. False if the data is damaged or unusual
    /// somewhere above the last row of blocks of the crop: then the library decides what is wrong. May be called again
    /// with other crops.
    [[nodiscard]] bool decode_planes(CropBox crop, YccPlanes& planes) noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}   // namespace drawpoint
