#include "pipeline/image/encode.hpp"
#include "pipeline/image/jpeg_output.hpp"

#include <drawpoint/pipeline/rng.hpp>

#include <algorithm>
#include <cmath>

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
    JpegOutput output{size, kind.components};
    jpeg_compress_struct& info = output.info;
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
    output.write(pixels);
    return output.finish();
}

}   // namespace drawpoint::test
