#include "pipeline/image/own_jpeg/unstuff.hpp"

#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace drawpoint::own_jpeg {

Segment unstuff(const std::uint8_t* from, std::size_t bytes, std::uint8_t* out) noexcept {
    Segment segment;
    std::size_t at = 0;
    std::uint8_t* to = out;
    for (;;) {
#if defined(__SSE2__)
        const __m128i all = _mm_set1_epi8(-1);
        while (bytes - at >= 32) {
            const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
            const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + 16));
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to), low);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16), high);
            const auto found = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(low, all))) |
                               static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(high, all))) << 16;
            const auto plain = static_cast<std::size_t>(std::countr_zero(found));   // 32 if none
            at += plain;
            to += plain;
            if (found != 0)
                break;
        }
#endif
        while (at < bytes && from[at] != 0xFF)
            *to++ = from[at++];
        if (bytes - at < 2 || from[at + 1] != 0)
            break;
        *to++ = 0xFF;
        at += 2;
    }
    segment.bytes = static_cast<std::size_t>(to - out);
    segment.next = at;
    segment.marker = bytes - at < 2 ? 0 : from[at + 1];
    return segment;
}

}   // namespace drawpoint::own_jpeg
