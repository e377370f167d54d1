#pragma once
#include <drawpoint/pipeline/image/image.hpp>
#include "pipeline/image/ycc_planes.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace drawpoint {

/// Decodes the usual JPEG file (baseline, 8 bit, YCbCr or gray, one scan) to planes, in about half of libjpeg-turbo's time.
/// It never errs: whatever is unusual or damaged it leaves to the library, whose planes it would otherwise have made to the
/// last bit (JDCT_ISLOW). One object per thread, movable. Never allocates once its scratch has grown.
class OwnJpegDecoder {
public:
    /// The instructions it may use: the best that the processor has, or plain C++. The planes are the same.
    enum class Instructions : unsigned char { best, portable };

    explicit OwnJpegDecoder(Instructions instructions = Instructions::best);
    ~OwnJpegDecoder();
    OwnJpegDecoder(OwnJpegDecoder&&) noexcept;
    OwnJpegDecoder& operator=(OwnJpegDecoder&&) noexcept;

    /// Reads the header; true if this decoder takes the file. Costs about a microsecond, and some 20 where the Huffman tables
    /// are not those of the file before. `file` must outlive the decode calls that follow.
    [[nodiscard]] bool open(std::span<const std::byte> file) noexcept;

    /// Size of the opened image; 0x0 if none is open.
    [[nodiscard]] ImageSize size() const noexcept;

    /// What follows the header: the compressed data up to the end of the file. libjpeg's `bytes_in_buffer` after
    /// jpeg_read_header() counts the same bytes.
    [[nodiscard]] std::span<const std::byte> scan() const noexcept;

    /// Decodes what `crop`, which lies inside the image, needs: its own samples and those of one more pixel on each side, as
    /// far as the image goes. The planes are valid until the next call. False: the data is damaged or unusual down to the
    /// crop's last row of blocks; what the library says of it is the file's error. May be called again with other crops.
    [[nodiscard]] bool decode_planes(CropBox crop, YccPlanes& planes) noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}   // namespace drawpoint
