#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#define DRAWPOINT_ALWAYS_INLINE inline __attribute__((always_inline))

namespace drawpoint::own_jpeg {

/// The next bits of the compressed data, the first one on top. Does not check where the data ends: whoever reads looks at
/// `next` before it can be reader_padding bytes beyond.
struct BitReader {
    std::uint64_t bits = 0;
    const std::uint8_t* next = nullptr;   ///< the first byte that is not wholly in `bits`
    std::uint32_t count = 0;              ///< how many of `bits` count; those below are right or 0

    /// Makes them at least 56.
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
