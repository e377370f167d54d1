#pragma once
// The law of our own JPEG decoder: for any bytes, either it leaves the file to the library, or its planes equal the
// library's and the library had nothing to warn about. All its instruction sets give the same result.
#include <drawpoint/pipeline/image/pixels/image.hpp>
#include "pipeline/image/own_jpeg/own_jpeg.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace drawpoint::test {

/// The planes that libjpeg-turbo decodes (raw_data_out, JDCT_ISLOW).
class LibraryPlanes {
public:
    LibraryPlanes();
    ~LibraryPlanes();
    LibraryPlanes(const LibraryPlanes&) = delete;
    LibraryPlanes& operator=(const LibraryPlanes&) = delete;

    /// Decodes from the top down to the row of MCUs that contains row `end` - 1. False: there was an error or a
    /// warning.
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

    /// Checks the law for this crop. If the result is `broken`, fault() describes how.
    Verdict check(std::span<const std::byte> file, CropBox crop) { return check(file, crop, true); }
    /// The same for a crop that is chosen by the file's bytes. They also choose which files the portable code decodes,
    /// too: one in four.
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
