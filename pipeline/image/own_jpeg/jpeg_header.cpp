#include "pipeline/image/own_jpeg/jpeg_header.hpp"

#include <algorithm>
#include <cstring>

namespace drawpoint::own_jpeg {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::uint32_t two_bytes(Bytes bytes, std::size_t at) { return bytes[at] * 256u + bytes[at + 1]; }

bool begins_with(Bytes segment, const char* name, std::size_t length) {
    return segment.size() >= length && std::memcmp(segment.data(), name, length) == 0;
}

bool read_quantization(Bytes segment, JpegHeader& header) {
    for (; segment.size() >= 65; segment = segment.subspan(65)) {
        if (segment[0] > 3)   // a table of 16 bits, or none
            return false;
        std::copy_n(segment.begin() + 1, 64, header.quantization[segment[0]].begin());
        header.quantization_defined[segment[0]] = true;
    }
    return segment.empty();
}

bool read_huffman(Bytes segment, JpegHeader& header) {
    while (segment.size() >= 17) {
        const unsigned kind = segment[0] >> 4, index = segment[0] & 15;
        if (kind > 1 || index > 3)
            return false;
        HuffmanSpec& spec = (kind == 0 ? header.dc : header.ac)[index];
        std::copy_n(segment.begin() + 1, 16, spec.counts.begin());
        std::size_t symbols = 0;
        for (const std::uint8_t count : spec.counts)
            symbols += count;
        segment = segment.subspan(17);
        if (symbols > 256 || symbols > segment.size())
            return false;
        spec.symbols.fill(0);
        std::copy_n(segment.begin(), symbols, spec.symbols.begin());
        spec.defined = true;
        segment = segment.subspan(symbols);
    }
    return segment.empty();
}

bool read_frame(Bytes segment, JpegHeader& header) {
    if (header.component_count != 0 || segment.size() < 6 || segment[0] != 8)
        return false;
    header.size = {two_bytes(segment, 3), two_bytes(segment, 1)};
    header.component_count = segment[5];
    if (header.size.width == 0 || header.size.height == 0 || header.size.width > 65500 || header.size.height > 65500)
        return false;
    if ((header.component_count != 1 && header.component_count != 3) ||
        segment.size() != 6 + header.component_count * 3)
        return false;
    for (std::uint32_t c = 0; c < header.component_count; ++c) {
        const std::uint8_t* spec = &segment[6 + c * 3];
        header.components[c] = {spec[0], static_cast<std::uint8_t>(spec[1] >> 4),
                                static_cast<std::uint8_t>(spec[1] & 15), spec[2]};
        if (spec[2] > 3)
            return false;
        for (std::uint32_t other = 0; other < c; ++other)
            if (header.components[other].id == spec[0])
                return false;
    }
    auto& [luma, blue, red] = header.components;
    if (header.component_count == 1) {
        // The only component of a scan is not interleaved, whatever its factors; others than 1 change nothing but are
        // rare.
        header.sampling = ChromaSampling::gray;
        return luma.across == 1 && luma.down == 1;
    }
    if (blue.across != 1 || blue.down != 1 || red.across != 1 || red.down != 1)
        return false;
    if (luma.across == 2 && luma.down == 2)
        header.sampling = ChromaSampling::s420;
    else if (luma.across == 2 && luma.down == 1)
        header.sampling = ChromaSampling::s422;
    else if (luma.across == 1 && luma.down == 1)
        header.sampling = ChromaSampling::s444;
    else
        return false;
    return true;
}

bool read_scan(Bytes segment, JpegHeader& header) {
    const std::uint32_t count = header.component_count;
    if (count == 0 || segment.size() != 4 + count * 2 || segment[0] != count)
        return false;
    for (std::uint32_t c = 0; c < count; ++c) {
        ComponentSpec& component = header.components[c];
        const std::uint8_t tables = segment[2 + c * 2];
        if (segment[1 + c * 2] != component.id || tables >> 4 > 3 || (tables & 15) > 3)
            return false;
        component.dc_table = tables >> 4;
        component.ac_table = tables & 15;
        if (!header.dc[component.dc_table].defined || !header.ac[component.ac_table].defined ||
            !header.quantization_defined[component.quantization])
            return false;
    }
    const Bytes band = segment.subspan(1 + count * 2);
    return band[0] == 0 && band[1] == 63 && band[2] == 0;
}

// What libjpeg-turbo says of three components.
bool is_ycc(const JpegHeader& header, bool jfif, bool adobe, unsigned transform) {
    if (header.component_count == 1 || jfif)
        return true;
    if (adobe)
        return transform == 1;
    const auto& [luma, blue, red] = header.components;
    return luma.id == 1 && blue.id == 2 && red.id == 3;
}

}   // namespace

bool read_header(std::span<const std::byte> file, JpegHeader& header) noexcept {
    header.component_count = 0;
    header.restart_interval = 0;
    header.quantization_defined = {};
    for (std::size_t i = 0; i < 4; ++i)
        header.dc[i].defined = header.ac[i].defined = false;
    const Bytes bytes{reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
    if (bytes.size() < 2 || bytes[0] != 0xFF || bytes[1] != 0xD8)
        return false;
    bool jfif = false, adobe = false;
    unsigned transform = 0;
    for (std::size_t at = 2; bytes.size() - at >= 4;) {
        if (bytes[at] != 0xFF)
            return false;
        const std::uint8_t marker = bytes[at + 1];
        const std::size_t length = two_bytes(bytes, at + 2);
        if (marker < 0xC0 || (marker >= 0xD0 && marker <= 0xD9) || length < 2 || length > bytes.size() - at - 2)
            return false;
        const Bytes segment = bytes.subspan(at + 4, length - 2);
        at += 2 + length;
        bool known = true;
        switch (marker) {
        case 0xC0:
        case 0xC1: known = read_frame(segment, header); break;
        case 0xC4: known = read_huffman(segment, header); break;
        case 0xDB: known = read_quantization(segment, header); break;
        case 0xDD:
            known = segment.size() == 2;
            if (known)
                header.restart_interval = two_bytes(segment, 0);
            break;
        case 0xDA: header.scan_begin = at; return read_scan(segment, header) && is_ycc(header, jfif, adobe, transform);
        case 0xE0:
            if (segment.size() >= 14 && begins_with(segment, "JFIF", 5)) {
                jfif = true;
                known = segment[5] == 1;
            }
            break;
        case 0xEE:
            if (segment.size() >= 12 && begins_with(segment, "Adobe", 5)) {
                adobe = true;
                transform = segment[11];
            }
            break;
        default: known = (marker > 0xE0 && marker <= 0xEF) || marker == 0xFE; break;
        }
        if (!known)
            return false;
    }
    return false;
}

}   // namespace drawpoint::own_jpeg
