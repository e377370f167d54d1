#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#define DRAWPOINT_ALWAYS_INLINE inline __attribute__((always_inline))

namespace drawpoint::own_jpeg {

/// The next bits of the compressed data, the first one on top. It does not check for the end of the data: the caller
/// compares `next` with the end before it can be reader_padding bytes beyond.
struct BitReader {
    std::uint64_t bits = 0;
    const std::uint8_t* next = nullptr;   ///< the first byte that is not wholly in `bits`
    std::uint32_t count = 0;              ///< number of valid bits; the bits below are right too, or 0

    /// Raises `count` to at least 56.
    DRAWPOINT_ALWAYS_INLINE void refill() noexcept {
        std::uint64_t word;
        std::memcpy(&word, next, sizeof word);
        if constexpr (std::endian::native == std::endian::little)
            word = __builtin_bswap64(word);
        bits |= word >> count;
        next += (63 - count) >> 3;
        count |= 56;
    }

    DRAWPOINT_ALWAYS_INLINE void drop(std::uint32_t length) noexcept {
        bits <<= length;
        count -= length;
    }
};

/// Bytes that must be readable beyond the data: more than the largest MCU can take.
inline constexpr std::size_t reader_padding = 2048;

}   // namespace drawpoint::own_jpeg
