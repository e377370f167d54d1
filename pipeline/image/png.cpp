#include "pipeline/image/png.hpp"

#include <drawpoint/pipeline/image/jpeg.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include <spng.h>
#include <zlib.h>

namespace drawpoint {
namespace {

constexpr std::size_t signature_bytes = 8, frame_bytes = 12;   // of a chunk: length, type, checksum
constexpr std::uint64_t most_deflated = 1032;                  // bytes that one byte of a deflate stream can stand for

std::uint32_t big_endian(const std::byte* at) {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i)
        value = value << 8 | std::to_integer<std::uint32_t>(at[i]);
    return value;
}

struct Chunk {
    std::size_t at = 0;   // of its length field in the file
    std::span<const std::byte> data;
    std::array<char, 4> type{};

    [[nodiscard]] bool is(const char* name) const { return std::memcmp(type.data(), name, 4) == 0; }
    [[nodiscard]] bool critical() const { return (type[0] & 0x20) == 0; }
    [[nodiscard]] std::size_t end() const { return at + data.size() + frame_bytes; }
};

std::string name_of(const Chunk& chunk) {
    std::string text;
    for (const char letter : chunk.type)
        text += std::isalpha(static_cast<unsigned char>(letter)) != 0 ? letter : '?';
    return text + " at byte " + std::to_string(chunk.at);
}

Chunk chunk_at(std::span<const std::byte> file, std::size_t at) {
    const std::size_t left = file.size() - at;
    if (left < frame_bytes)
        throw ImageError("truncated PNG: it ends at byte " + std::to_string(file.size()) + " without an end chunk");
    Chunk chunk{.at = at};
    std::memcpy(chunk.type.data(), file.data() + at + 4, 4);
    const std::uint32_t length = big_endian(file.data() + at);
    if (length > left - frame_bytes)
        throw ImageError("truncated PNG: chunk " + name_of(chunk) + " says " + std::to_string(length) + " bytes, " +
                         std::to_string(left - frame_bytes) + " are there");
    chunk.data = file.subspan(at + 8, length);
    return chunk;
}

void check_sum(const Chunk& chunk) {
    const std::byte* type = chunk.data.data() - 4;
    const uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(type), chunk.data.size() + 4);
    if (sum != big_endian(chunk.data.data() + chunk.data.size()))
        throw ImageError("damaged PNG: wrong checksum of chunk " + name_of(chunk));
}

/// The file without what is not needed for its pixels, as the library asks for it: whatever lies in a text or a colour
/// profile, it is never unpacked.
struct PixelChunks {
    std::span<const std::byte> file;
    std::size_t at = 0, until = signature_bytes;   // the bytes that may be handed out next
    std::size_t chunk = 0;                         // where the chunk of the last ones begins

    static int read(spng_ctx*, void* self, void* to, std::size_t bytes) {
        auto& chunks = *static_cast<PixelChunks*>(self);
        auto* out = static_cast<std::byte*>(to);
        while (bytes > 0) {
            if (chunks.at == chunks.until && !chunks.next())
                return SPNG_IO_EOF;
            const std::size_t part = std::min(bytes, chunks.until - chunks.at);
            std::memcpy(out, chunks.file.data() + chunks.at, part);
            chunks.at += part;
            out += part;
            bytes -= part;
        }
        return 0;
    }

    bool next() {
        while (file.size() - at >= frame_bytes) {   // open() has seen every chunk
            until = at + frame_bytes + big_endian(file.data() + at);
            if ((std::to_integer<int>(file[at + 4]) & 0x20) == 0) {
                chunk = at;
                return true;
            }
            at = until;
        }
        return false;
    }

    [[noreturn]] void refuse(int error) const {
        if (error == SPNG_EMEM)
            throw std::bad_alloc{};
        const bool cut = error == SPNG_IO_EOF || error == SPNG_EOF || error == SPNG_EIDAT_TOO_SHORT;
        throw ImageError((cut ? "truncated PNG: " : "damaged PNG: ") + ("byte " + std::to_string(chunk)) + ": " +
                         spng_strerror(error));
    }
    void check(int error) const {
        if (error != SPNG_OK)
            refuse(error);
    }
};

struct Free {
    void operator()(spng_ctx* context) const noexcept { spng_ctx_free(context); }
};

/// Bytes of the filtered rows of all passes.
std::uint64_t filtered_bytes(ImageSize size, unsigned bits_per_pixel, bool interlaced) {
    const auto rows = [bits_per_pixel](std::uint64_t width, std::uint64_t height) {
        return width == 0 ? 0 : height * (1 + (width * bits_per_pixel + 7) / 8);
    };
    if (!interlaced)
        return rows(size.width, size.height);
    constexpr unsigned pass[7][4]{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                  {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};   // x, y, step across, step down
    std::uint64_t bytes = 0;
    for (const auto& [x, y, across, down] : pass)
        bytes += rows((std::uint64_t{size.width} + across - 1 - x) / across,
                      (std::uint64_t{size.height} + down - 1 - y) / down);
    return bytes;
}

}   // namespace

void PngReader::open(std::span<const std::byte> file) {
    size_ = {};
    file_ = file;
    if (file.size() < signature_bytes)
        throw ImageError("truncated PNG: it has " + std::to_string(file.size()) + " bytes");
    const Chunk header = chunk_at(file, signature_bytes);
    if (!header.is("IHDR") || header.data.size() != 13)
        throw ImageError("damaged PNG: it begins with chunk " + name_of(header) + " in place of its header");
    check_sum(header);

    std::uint64_t packed = 0;
    bool palette = false, after_pixels = false;
    for (Chunk chunk = chunk_at(file, header.end());; chunk = chunk_at(file, chunk.end())) {
        check_sum(chunk);
        if (chunk.is("IEND"))
            break;
        if (chunk.is("IDAT")) {
            if (after_pixels)
                throw ImageError("damaged PNG: chunk " + name_of(chunk) + " does not follow the other pixels");
            packed += chunk.data.size();
            continue;
        }
        after_pixels = packed > 0;
        palette = palette || chunk.is("PLTE");
        if (chunk.critical() && !chunk.is("PLTE"))
            throw ImageError("unsupported PNG: chunk " + name_of(chunk));
    }

    const auto byte = [&header](std::size_t at) { return std::to_integer<unsigned>(header.data[at]); };
    const ImageSize size{big_endian(header.data.data()), big_endian(header.data.data() + 4)};
    const std::string pixels = std::to_string(size.width) + 'x' + std::to_string(size.height) + " pixels";
    if (size.width == 0 || size.height == 0 || (size.width | size.height) >> 31 != 0)
        throw ImageError("damaged PNG: " + pixels);
    if (std::uint64_t{size.width} * size.height > most_pixels(file.size()))
        throw ImageError("PNG too large: " + pixels + " in " + std::to_string(file.size()) + " bytes, the limit is " +
                         std::to_string(most_pixels(file.size())));
    const unsigned bits = byte(8), colour = byte(9);
    constexpr unsigned channels[7]{1, 0, 3, 1, 2, 0, 4};
    const bool known =
        colour < 7 && channels[colour] != 0 &&
        (colour == 3 ? bits == 1 || bits == 2 || bits == 4 || bits == 8
                     : bits == 8 || bits == 16 || (colour == 0 && (bits == 1 || bits == 2 || bits == 4)));
    if (!known || byte(10) != 0 || byte(11) != 0 || byte(12) > 1)
        throw ImageError("unsupported PNG: colour type " + std::to_string(colour) + " with " + std::to_string(bits) +
                         " bits, methods " + std::to_string(byte(10)) + ", " + std::to_string(byte(11)) + ", " +
                         std::to_string(byte(12)));
    if (colour == 3 && !palette)
        throw ImageError("damaged PNG: it has no palette");
    if (filtered_bytes(size, bits * channels[colour], byte(12) == 1) > packed * most_deflated)
        throw ImageError("truncated PNG: " + std::to_string(packed) + " bytes cannot hold " + pixels);
    gray16_ = colour == 0 && bits == 16;
    interlaced_ = byte(12) == 1;
    size_ = size;
}

ImageView PngReader::decode_window(CropBox crop) {
    const std::unique_ptr<spng_ctx, Free> context{spng_ctx_new(0)};
    if (!context)
        throw std::bad_alloc{};
    PixelChunks chunks{.file = file_};
    chunks.check(spng_set_crc_action(context.get(), SPNG_CRC_USE, SPNG_CRC_USE));   // open() has checked them
    chunks.check(spng_set_png_stream(context.get(), PixelChunks::read, &chunks));

    const auto stride_of = [](std::size_t width) { return (width * 3 + 127) / 64 * 64; };
    const std::size_t stride = stride_of(crop.width);
    std::uint8_t* const window =
        window_.get(reserved_bytes(stride * crop.height, stride_of(size_.width) * size_.height));
    const std::size_t pixel = gray16_ ? 2 : 3, row = pixel * size_.width;
    const int format = gray16_ ? SPNG_FMT_PNG : SPNG_FMT_RGB8;
    const auto keep = [&](const std::uint8_t* from, std::uint32_t y) {
        std::uint8_t* const to = window + (y - crop.y) * stride;
        const std::uint8_t* const left = from + pixel * crop.x;
        if (!gray16_) {
            std::memcpy(to, left, pixel * crop.width);
            return;
        }
        for (std::size_t x = 0; x < crop.width; ++x) {
            std::uint16_t level = 0;
            std::memcpy(&level, left + 2 * x, 2);
            std::memset(to + 3 * x, std::min<int>(level, 255), 3);
        }
    };
    if (interlaced_) {
        std::uint8_t* const all = rows_.get(row * size_.height);
        chunks.check(spng_decode_image(context.get(), all, row * size_.height, format, 0));
        for (std::uint32_t y = crop.y; y < crop.y + crop.height; ++y)
            keep(all + y * row, y);
    } else {
        std::uint8_t* const one = rows_.get(row);
        chunks.check(spng_decode_image(context.get(), nullptr, 0, format, SPNG_DECODE_PROGRESSIVE));
        for (std::uint32_t y = 0; y < crop.y + crop.height; ++y) {
            const int result = spng_decode_row(context.get(), one, row);
            if (result != SPNG_OK && result != SPNG_EOI)   // EOI: that was the last row
                chunks.refuse(result);
            if (y >= crop.y)
                keep(one, y);
        }
    }
    return {window, {crop.width, crop.height}, stride};
}

}   // namespace drawpoint
