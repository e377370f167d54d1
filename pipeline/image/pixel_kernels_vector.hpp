#pragma once
// Kernels written once over vectors of 16-bit words. Each pixel_kernels_*.cpp includes this after it has chosen its
// instruction set, and says in V how the few things are done for which C++ has no operator:
//   Words, Unsigned      vectors of 16-bit integers, of the same size
//   widen(bytes)         as many bytes as Words has elements
//   rounded(a, b)        a * b / 2^15, rounded
//   high_unsigned(a, b)  upper 16 bits of the unsigned products
//   green(cb, cr)        (-11277 * cb - 23401 * cr + 32768) >> 16
//   store_pairs(to, even, odd)   signed words cut to 0..255, as bytes even[0], odd[0], even[1], ...
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace drawpoint {
namespace {

/// Whether all stores of a row may bypass the cache: a batch is far larger than the cache, and is not read back soon.
inline bool can_stream(const FloatRows& out, std::uint32_t outputs, std::size_t vector_bytes) {
    const auto aligned = [vector_bytes](std::size_t bytes) { return bytes % vector_bytes == 0; };
    return out.plane >= 8192 && aligned(reinterpret_cast<std::uintptr_t>(out.red)) &&
           aligned(out.plane * sizeof(float)) && aligned(outputs * sizeof(float));
}
/// A store of levels is no whole line of the cache.
inline bool can_stream(const LevelRows&, std::uint32_t, std::size_t) { return false; }

inline void horizontal_in(const PixelKernels& kernels, const std::uint8_t* row, std::size_t plane,
                          const FilterTable& table, PackedWeights& packed, const FloatRows& out) {
    kernels.horizontal(row, plane, table, packed, out);
}
inline void horizontal_in(const PixelKernels& kernels, const std::uint8_t* row, std::size_t plane,
                          const FilterTable& table, PackedWeights& packed, const LevelRows& out) {
    kernels.horizontal_levels(row, plane, table, packed, out);
}

template <class V>
struct VectorKernels {
    using Words = typename V::Words;
    using Unsigned = typename V::Unsigned;
    static constexpr std::size_t words = sizeof(Words) / 2;

    template <class Vector, class Element>
    static inline Vector load(const Element* from) {
        Vector vector;
        std::memcpy(&vector, from, sizeof vector);
        return vector;
    }
    template <class Vector, class Element>
    static inline void store(Element* to, Vector vector) {
        std::memcpy(to, &vector, sizeof vector);
    }

    static inline Words lower(Unsigned bytes) { return reinterpret_cast<Words>(bytes & 255); }
    static inline Words upper(Unsigned bytes) { return reinterpret_cast<Words>(bytes >> 8); }

    static void chroma_sums(const std::uint8_t* near, const std::uint8_t* far, std::size_t count, std::int16_t* sums) {
        for (std::size_t i = 0; i < count; i += words) {
            const Words once = V::widen(near + i);
            store(sums + i, once + once + once + V::widen(far + i) - sum_centre);
        }
    }

    static void widen(const std::uint8_t* samples, std::size_t count, std::int16_t* widened) {
        for (std::size_t i = 0; i < count; i += words)
            store(widened + i, V::widen(samples + i) - widened_centre);
    }

    struct Colors {
        Words red, green, blue;
    };

    // What libjpeg's conversion gives for every combination: 1.402 * cr, 0.34414 * cb + 0.71414 * cr and 1.772 * cb,
    // each rounded. Chroma is centred on 0 and doubled, so that the factors fit 16 bits.
    static inline Colors convert(Words luma, Words cb, Words cr) {
        return {luma + V::rounded(cr, 22970), luma + V::green(cb, cr), luma + V::rounded(cb, 29033)};
    }

    static inline void store_rgb(std::uint8_t* rgb, std::size_t plane, const Colors& even, const Colors& odd) {
        V::store_pairs(rgb, even.red, odd.red);
        V::store_pairs(rgb + plane, even.green, odd.green);
        V::store_pairs(rgb + 2 * plane, even.blue, odd.blue);
    }

    // Twice a sum of 2^Shift samples, rounded down to a sample.
    template <int Shift>
    static inline Words doubled(Words sum) {
        return (sum >> (Shift - 1)) & -2;
    }

    // 3/4 of the nearer chroma sum and 1/4 of the further one. Luma of even and odd pixels are the lower and the upper
    // bytes of words, so nothing is interleaved before the store. Rounds are what the sums do not carry yet.
    template <int Shift, int EvenRound, int OddRound>
    static void rgb_upsampled(const std::uint8_t* luma, const std::int16_t* blue, const std::int16_t* red,
                              std::size_t pairs, std::uint8_t* rgb, std::size_t plane) {
        for (std::size_t i = 0; i < pairs; i += words) {
            const Unsigned y = load<Unsigned>(luma + 2 * i);
            const Words b3 = load<Words>(blue + i) * 3, r3 = load<Words>(red + i) * 3;
            const Colors even = convert(lower(y), doubled<Shift>(b3 + load<Words>(blue + i - 1) + EvenRound),
                                        doubled<Shift>(r3 + load<Words>(red + i - 1) + EvenRound));
            const Colors odd = convert(upper(y), doubled<Shift>(b3 + load<Words>(blue + i + 1) + OddRound),
                                       doubled<Shift>(r3 + load<Words>(red + i + 1) + OddRound));
            store_rgb(rgb + 2 * i, plane, even, odd);
        }
    }

    static void rgb_444(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, std::size_t pairs,
                        std::uint8_t* rgb, std::size_t plane) {
        for (std::size_t i = 0; i < pairs; i += words) {
            const Unsigned y = load<Unsigned>(luma + 2 * i), b = load<Unsigned>(blue + 2 * i),
                           r = load<Unsigned>(red + 2 * i);
            const Colors even = convert(lower(y), (lower(b) - 128) * 2, (lower(r) - 128) * 2);
            const Colors odd = convert(upper(y), (upper(b) - 128) * 2, (upper(r) - 128) * 2);
            store_rgb(rgb + 2 * i, plane, even, odd);
        }
    }

    template <std::uint32_t Taps>
    static inline void vertical_block(const std::uint8_t* rows, std::size_t stride, const std::uint16_t* weights,
                                      std::uint32_t taps, std::uint16_t rounding, std::uint8_t* out) {
        const std::uint32_t count = Taps != 0 ? Taps : taps;
        Unsigned even = Unsigned{} + rounding, odd = even;
        for (std::uint32_t tap = 0; tap < count; ++tap) {
            const Unsigned pixels = load<Unsigned>(rows + tap * stride);
            even += V::high_unsigned(pixels << 8, weights[tap]);
            odd += V::high_unsigned(pixels & 0xFF00, weights[tap]);
        }
        store(out, (even >> 8) | (odd & 0xFF00));
    }

    template <std::uint32_t Taps>
    static void vertical_row(const std::uint8_t* rows, std::size_t stride, const std::uint16_t* weights,
                             std::uint32_t taps, std::uint16_t rounding, std::size_t bytes, std::uint8_t* out) {
        std::size_t i = 0;
        for (; i + 2 * words <= bytes; i += 2 * words)
            vertical_block<Taps>(rows + i, stride, weights, taps, rounding, out + i);
        if (i < bytes) {
            i = bytes - 2 * words;
            vertical_block<Taps>(rows + i, stride, weights, taps, rounding, out + i);
        }
    }

    static void vertical(const std::uint8_t* rows, std::size_t stride, const std::uint16_t* weights, std::uint32_t taps,
                         std::uint16_t rounding, std::size_t bytes, std::uint8_t* out) {
        if (bytes < 2 * words) {
            for (std::size_t i = 0; i < bytes; ++i) {
                std::uint32_t sum = rounding;
                for (std::uint32_t tap = 0; tap < taps; ++tap)
                    sum += (std::uint32_t{rows[tap * stride + i]} * weights[tap]) >> 8;
                out[i] = static_cast<std::uint8_t>(sum >> 8);
            }
            return;
        }
        switch (taps) {
        case 1: return vertical_row<1>(rows, stride, weights, taps, rounding, bytes, out);
        case 2: return vertical_row<2>(rows, stride, weights, taps, rounding, bytes, out);
        case 3: return vertical_row<3>(rows, stride, weights, taps, rounding, bytes, out);
        case 4: return vertical_row<4>(rows, stride, weights, taps, rounding, bytes, out);
        case 5: return vertical_row<5>(rows, stride, weights, taps, rounding, bytes, out);
        case 6: return vertical_row<6>(rows, stride, weights, taps, rounding, bytes, out);
        default: return vertical_row<0>(rows, stride, weights, taps, rounding, bytes, out);
        }
    }

    static constexpr PixelKernels with(decltype(PixelKernels::deinterleave) deinterleave,
                                       decltype(PixelKernels::interleave) interleave, decltype(PixelKernels::pack) pack,
                                       decltype(PixelKernels::horizontal) horizontal,
                                       decltype(PixelKernels::horizontal_levels) horizontal_levels,
                                       decltype(PixelKernels::finish) finish) {
        return {chroma_sums,
                widen,
                rgb_upsampled<4, 0, -1>,
                rgb_upsampled<2, 1, 2>,
                rgb_444,
                deinterleave,
                interleave,
                vertical,
                pack,
                horizontal,
                horizontal_levels,
                finish};
    }
};

}   // namespace
}   // namespace drawpoint
