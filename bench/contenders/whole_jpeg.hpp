#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <stdexcept>

#include <jpeglib.h>

namespace drawpoint::bench {

/// Decodes a whole picture by libjpeg-turbo as a loader without drawpoint would: RGB, a reader of its own for each.
/// `place(height, width)` gives the memory for height × width × 3 bytes. Throws std::runtime_error with the library's
/// message, and what `place` throws.
template <class Place>
void decode_whole(std::span<const std::byte> file, Place place) {
    struct Reader {
        Reader() {
            jpeg.err = jpeg_std_error(&errors);
            errors.error_exit = [](j_common_ptr of) {   // the default ends the program
                char message[JMSG_LENGTH_MAX];
                of->err->format_message(of, message);
                throw std::runtime_error{message};
            };
            jpeg_create_decompress(&jpeg);
        }
        ~Reader() { jpeg_destroy_decompress(&jpeg); }
        Reader(const Reader&) = delete;
        Reader& operator=(const Reader&) = delete;
        jpeg_decompress_struct jpeg;
        jpeg_error_mgr errors;
    } reader;
    jpeg_decompress_struct& jpeg = reader.jpeg;
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg);
    unsigned char* const pixels = place(jpeg.output_height, jpeg.output_width);
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = pixels + std::size_t{3} * jpeg.output_width * jpeg.output_scanline;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
}

}   // namespace drawpoint::bench
