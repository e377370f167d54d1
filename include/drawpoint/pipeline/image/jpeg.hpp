#pragma once
#include <drawpoint/pipeline/image/pixels/image.hpp>
#include <drawpoint/pipeline/image/resize.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace drawpoint {

/// The largest number of scans in a progressive file; a file with more is refused.
inline constexpr int max_jpeg_scans = 100;

/// The code that decodes a JPEG file. All choices give the same pixels, bit for bit.
enum class JpegBackend : std::uint8_t {
    automatic,   ///< the fastest, at present `own`
    library,     ///< libjpeg-turbo only
    own,         ///< our baseline decoder; libjpeg-turbo for files it does not support and for every damaged one
};

/// Decodes JPEG files from memory, only the rows and columns that a crop needs, fused with resize, flip and
/// normalisation. Gray images give three equal channels; CMYK and YCCK are converted as by Pillow; EXIF orientation is
/// ignored, as by torchvision. Every warning of the library is an error: damaged pixels are never delivered. One object
/// per thread, movable. Never allocates once its scratch has grown, except for libjpeg's own pools, which live for one
/// image.
class JpegDecoder {
public:
    explicit JpegDecoder(JpegBackend backend = JpegBackend::automatic);
    ~JpegDecoder();
    JpegDecoder(JpegDecoder&&) noexcept;
    JpegDecoder& operator=(JpegDecoder&&) noexcept;

    /// Reads the header and checks that the file is complete. Costs a few microseconds. Throws ImageError; afterwards
    /// another file may be opened. `file` must outlive the decode calls that follow.
    void open(std::span<const std::byte> file);

    /// Size of the opened image; 0x0 if none is open.
    ImageSize size() const noexcept;

    /// Decodes `crop`, resizes it to `target` and writes it as `out` says. May be called again with other crops. Throws
    /// ImageError for damaged data, std::invalid_argument as resize_normalize() does, std::logic_error if nothing is
    /// open. If it throws, nothing has been written.
    void decode(CropBox crop, ImageSize target, bool flip, ResizeFilter filter, const PlanarOutput& out);

    /// Decodes `crop` alone: 3 * crop.height * crop.width bytes, interleaved RGB, rows without padding.
    /// Throws as decode() does.
    void decode_rgb(CropBox crop, std::uint8_t* rgb_out);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}   // namespace drawpoint
