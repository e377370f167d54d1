#pragma once

#include <drawpoint/pipeline/storage/file_reader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <jpeglib.h>

namespace drawpoint::test {

/// A JPEG of smooth colours with an edge through them, so that each of its parts looks different.
inline std::vector<std::byte> jpeg(std::uint32_t width, std::uint32_t height) {
    jpeg_error_mgr errors;
    jpeg_compress_struct info;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    unsigned char* memory = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&info, &memory, &size);
    info.image_width = width;
    info.image_height = height;
    info.input_components = 3;
    info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 90, TRUE);
    jpeg_start_compress(&info, TRUE);
    std::vector<unsigned char> row(std::size_t{3} * width);
    for (std::uint32_t y = 0; y < height; ++y) {
        for (std::uint32_t x = 0; x < width; ++x) {
            row[3 * x] = static_cast<unsigned char>(255 * x / width);
            row[3 * x + 1] = static_cast<unsigned char>(255 * y / height);
            row[3 * x + 2] = 3 * x + 2 * y > 2 * width ? 200 : 30;
        }
        unsigned char* rows[] = {row.data()};
        jpeg_write_scanlines(&info, rows, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    const auto* bytes = reinterpret_cast<const std::byte*>(memory);
    std::vector<std::byte> file{bytes, bytes + size};
    std::free(memory);
    return file;
}

/// A data set of files in memory; image i has label 10 + i.
struct JpegsInMemory {
    std::vector<std::vector<std::byte>> files;
    [[nodiscard]] std::size_t size() const noexcept { return files.size(); }
    [[nodiscard]] std::size_t label(std::size_t index) const noexcept { return 10 + index; }
    [[nodiscard]] std::string path(std::size_t index) const { return "image " + std::to_string(index); }
    void read(std::size_t index, std::vector<std::byte>& contents) const {
        detail::resize_contents(contents, files[index].size(), "memory");   // grows as when files are read
        std::ranges::copy(files[index], contents.begin());
    }
};

}   // namespace drawpoint::test
