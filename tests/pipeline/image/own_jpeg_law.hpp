#pragma once
// The one law of the own decoder: for any bytes it either leaves the file to the library, or its planes are the library's and
// the library had nothing to warn of. What all its instructions make is the same.
#include <drawpoint/pipeline/image/image.hpp>
#include "pipeline/image/own_jpeg/own_jpeg.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace drawpoint::test {

/// libjpeg-turbo's own planes (raw_data_out, JDCT_ISLOW).
class LibraryPlanes {
public:
    LibraryPlanes();
    ~LibraryPlanes();
    LibraryPlanes(const LibraryPlanes&) = delete;
    LibraryPlanes& operator=(const LibraryPlanes&) = delete;

    /// Decodes from the top until the row of MCUs that holds row `end` - 1. False: an error or a warning.
    bool decode(std::span<const std::byte> file, std::uint32_t end);

    /// Sampling factors of the luma.
    [[nodiscard]] std::uint32_t across() const noexcept;
    [[nodiscard]] std::uint32_t down() const noexcept;
    [[nodiscard]] const std::uint8_t* row(std::size_t plane, std::uint32_t y) const noexcept;
    [[nodiscard]] const std::string& message() const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

class OwnJpegLaw {
public:
    enum class Verdict : std::uint8_t { refused, gave_up, equal, broken };

    /// What the law says of decoding this crop. `broken`: fault() says how.
    Verdict check(std::span<const std::byte> file, CropBox crop) { return check(file, crop, true); }
    /// The same of a crop that is chosen by the file's bytes, as are the files that the portable code decodes too: one of four.
    Verdict check(std::span<const std::byte> file);
    [[nodiscard]] const std::string& fault() const noexcept { return fault_; }

private:
    Verdict check(std::span<const std::byte> file, CropBox crop, bool portably);
    bool planes_are_equal(const YccPlanes& planes, CropBox crop, const char* whose);

    OwnJpegDecoder best_, portable_{OwnJpegDecoder::Instructions::portable};
    LibraryPlanes library_;
    std::string fault_;
};

}   // namespace drawpoint::test
