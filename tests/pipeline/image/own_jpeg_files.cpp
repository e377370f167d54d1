#include "pipeline/image/jpeg_output.hpp"
#include "pipeline/image/own_jpeg_files.hpp"

#include <drawpoint/pipeline/rng.hpp>

#include <algorithm>
#include <cmath>

namespace drawpoint::test {
namespace {

// Assigns other codes to the same symbols; the encoder uses them as they are.
void change_codes(JHUFF_TBL& table, Codes codes, bool dc) {
    std::vector<UINT8> symbols(table.huffval, table.huffval + (dc ? 12 : 162));
    UINT8 bits[17] = {};
    if (codes == Codes::flat) {
        bits[8] = static_cast<UINT8>(symbols.size());
    } else if (codes == Codes::longest) {
        std::reverse(symbols.begin(), symbols.end());
        for (int length = 1; length < 16; ++length)
            bits[length] = length < 9 ? 1 : 0;
        if (dc)
            bits[16] = static_cast<UINT8>(symbols.size() - 8);
        else {
            bits[15] = 20;
            bits[16] = static_cast<UINT8>(symbols.size() - 28);
        }
    } else {
        symbols.push_back(dc ? 15 : 0x0F);
        symbols.push_back(dc ? 14 : 0xFF);
        bits[3] = 4;
        bits[10] = static_cast<UINT8>(symbols.size() - 4);
    }
    std::copy(std::begin(bits), std::end(bits), table.bits);
    std::fill(std::begin(table.huffval), std::end(table.huffval), UINT8{0});
    std::copy(symbols.begin(), symbols.end(), table.huffval);
}

std::vector<std::uint8_t> pixels_of(ImageSize size, int components, double noise, std::uint64_t seed) {
    CounterRng random{seed, 1, (std::uint64_t{size.width} << 32) | size.height};
    const double fx = random.uniform() * 0.3, fy = random.uniform() * 0.3;
    const auto edge = static_cast<std::uint32_t>(5 + random.uniform() * 40);
    std::vector<std::uint8_t> pixels;
    for (std::uint32_t y = 0; y < size.height; ++y)
        for (std::uint32_t x = 0; x < size.width; ++x)
            for (int c = 0; c < components; ++c) {
                double value = 128 + 100 * (1 - noise) * std::sin(fx * x + c) * std::cos(fy * y - c);
                if ((x / edge + y / edge) % 3 == 0)
                    value = c * 100;
                else
                    value += noise * 255 * (random.uniform() - 0.5);
                pixels.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)));
            }
    return pixels;
}

}   // namespace

std::vector<std::byte> own_jpeg_file(ImageSize size, const OwnJpegKind& kind, std::uint64_t seed) {
    const auto pixels = pixels_of(size, kind.components, kind.noise, seed);
    JpegOutput output{size, kind.components};
    jpeg_compress_struct& info = output.info;
    jpeg_set_quality(&info, kind.quality, TRUE);
    if (kind.components == 3) {
        info.comp_info[0].h_samp_factor = kind.across;
        info.comp_info[0].v_samp_factor = kind.down;
    }
    info.optimize_coding = kind.codes == Codes::optimised;
    if (kind.codes != Codes::standard && kind.codes != Codes::optimised)
        for (int table = 0; table < 2; ++table) {
            change_codes(*info.dc_huff_tbl_ptrs[table], kind.codes, true);
            change_codes(*info.ac_huff_tbl_ptrs[table], kind.codes, false);
        }
    info.restart_interval = kind.restart_interval;
    output.write(pixels);
    return output.finish();
}

}   // namespace drawpoint::test
