#pragma once
#include <drawpoint/pipeline/image/pixels/image.hpp>
#include "pipeline/image/pixels/ycc_planes.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace drawpoint::own_jpeg {

/// One DHT table as the file has it.
struct HuffmanSpec {
    std::array<std::uint8_t, 16> counts{};   ///< codes of 1, 2, … 16 bits
    std::array<std::uint8_t, 256> symbols{};
    bool defined = false;
    friend bool operator==(const HuffmanSpec&, const HuffmanSpec&) = default;
};

/// One colour of the image.
struct ComponentSpec {
    std::uint8_t id = 0, across = 1, down = 1;   ///< blocks in an MCU
    std::uint8_t quantization = 0, dc_table = 0, ac_table = 0;
};

/// The content of a file up to its compressed data.
struct JpegHeader {
    ImageSize size;
    ChromaSampling sampling = ChromaSampling::gray;
    std::uint32_t component_count = 0;
    std::array<ComponentSpec, 3> components;
    std::array<std::array<std::uint8_t, 64>, 4> quantization{};   ///< in zigzag order
    std::array<bool, 4> quantization_defined{};
    std::array<HuffmanSpec, 4> dc, ac;
    std::uint32_t restart_interval = 0;   ///< MCUs, 0: none
    std::size_t scan_begin = 0;           ///< offset of the compressed data
};

/// Reads the header of a file that this decoder supports: baseline, 8 bit, YCbCr 4:2:0, 4:2:2 or 4:4:4 or gray, in one
/// scan, with complete tables. False for any other and for whatever libjpeg-turbo might warn about. Keeps no pointer.
bool read_header(std::span<const std::byte> file, JpegHeader& header) noexcept;

}   // namespace drawpoint::own_jpeg
