#include "image/encode.hpp"

#include "drawpoint/pipeline/rng.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

namespace drawpoint::test {

std::vector<std::uint8_t> picture(ImageSize size, int components, std::uint64_t seed) {
    CounterRng random{seed, 0, (std::uint64_t{size.width} << 32) | size.height};
    const double fx = random.uniform() * 0.3, fy = random.uniform() * 0.3;
    const auto edge = static_cast<std::uint32_t>(5 + random.uniform() * 20);
    std::vector<std::uint8_t> pixels;
    for (std::uint32_t y = 0; y < size.height; ++y)
        for (std::uint32_t x = 0; x < size.width; ++x)
            for (int c = 0; c < components; ++c) {
                double value = 128 + 90 * std::sin(fx * x + c) * std::cos(fy * y - c);
                value += 60 * (random.uniform() - 0.5);
                if ((x / edge + y / edge) % 2 == 0)
                    value = 255 - value;
                if ((x / edge) % 5 == 3)
                    value = c == static_cast<int>((y / edge) % 3) ? 255 : 0;
                pixels.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)));
            }
    return pixels;
}

std::vector<std::byte> jpeg_file(ImageSize size, const JpegKind& kind, std::uint64_t seed) {
    return encode(picture(size, kind.components, seed), size, kind);
}

std::vector<std::byte> encode(const std::vector<std::uint8_t>& pixels, ImageSize size, const JpegKind& kind) {
    jpeg_compress_struct info{};
    jpeg_error_mgr errors{};
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    unsigned char* memory = nullptr;
    unsigned long bytes = 0;
    jpeg_mem_dest(&info, &memory, &bytes);
    info.image_width = size.width;
    info.image_height = size.height;
    info.input_components = kind.components;
    info.in_color_space = kind.components == 1 ? JCS_GRAYSCALE : kind.components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&info);
    if (kind.ycck)
        jpeg_set_colorspace(&info, JCS_YCCK);
    jpeg_set_quality(&info, kind.quality, TRUE);
    if (kind.components == 3 || kind.ycck) {
        info.comp_info[0].h_samp_factor = kind.luma_h;
        info.comp_info[0].v_samp_factor = kind.luma_v;
        if (kind.ycck) {
            info.comp_info[3].h_samp_factor = kind.luma_h;
            info.comp_info[3].v_samp_factor = kind.luma_v;
        }
    }
    info.arith_code = kind.arithmetic;
    info.restart_in_rows = kind.restart_rows;
    std::vector<jpeg_scan_info> script;
    if (kind.progressive)
        jpeg_simple_progression(&info);
    if (kind.scans > 0) {
        script.push_back({info.num_components, {0, 1, 2, 3}, 0, 0, 0, 0});
        for (int band = 1; band <= 63 && static_cast<int>(script.size()) < kind.scans; ++band)
            for (int c = 0; c < info.num_components && static_cast<int>(script.size()) < kind.scans; ++c)
                script.push_back({1, {c}, band, band, 0, 0});
        info.scan_info = script.data();
        info.num_scans = static_cast<int>(script.size());
    }
    jpeg_start_compress(&info, TRUE);
    const std::size_t stride = std::size_t{size.width} * static_cast<std::size_t>(kind.components);
    while (info.next_scanline < size.height) {
        JSAMPROW row = const_cast<JSAMPROW>(pixels.data() + info.next_scanline * stride);
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    std::vector<std::byte> file(bytes);
    std::transform(memory, memory + bytes, file.begin(), [](unsigned char value) { return std::byte{value}; });
    jpeg_destroy_compress(&info);
    std::free(memory);
    return file;
}

}   // namespace drawpoint::test
