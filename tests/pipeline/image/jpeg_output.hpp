#pragma once

#include <drawpoint/pipeline/image/pixels/image.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <jpeglib.h>

namespace drawpoint::test {

/// libjpeg's compressor, writing to memory.
class JpegOutput {
public:
    /// Sets libjpeg's defaults for pixels with this many components: gray, RGB or CMYK.
    JpegOutput(ImageSize size, int components) {
        info.err = jpeg_std_error(&errors_);
        jpeg_create_compress(&info);
        jpeg_mem_dest(&info, &memory_, &bytes_);
        info.image_width = size.width;
        info.image_height = size.height;
        info.input_components = components;
        info.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
        jpeg_set_defaults(&info);
    }
    JpegOutput(const JpegOutput&) = delete;
    JpegOutput& operator=(const JpegOutput&) = delete;
    ~JpegOutput() {
        jpeg_destroy_compress(&info);
        std::free(memory_);
    }

    void write(const std::vector<std::uint8_t>& pixels) {
        jpeg_start_compress(&info, TRUE);
        const std::size_t stride = std::size_t{info.image_width} * static_cast<std::size_t>(info.input_components);
        while (info.next_scanline < info.image_height) {
            JSAMPROW row = const_cast<JSAMPROW>(pixels.data() + info.next_scanline * stride);
            jpeg_write_scanlines(&info, &row, 1);
        }
    }
    /// Returns the file.
    [[nodiscard]] std::vector<std::byte> finish() {
        jpeg_finish_compress(&info);
        std::vector<std::byte> file(bytes_);
        std::memcpy(file.data(), memory_, bytes_);
        return file;
    }

    jpeg_compress_struct info{};   ///< change it before writing

private:
    jpeg_error_mgr errors_{};
    unsigned char* memory_ = nullptr;
    unsigned long bytes_ = 0;
};

}   // namespace drawpoint::test
