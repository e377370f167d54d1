#include "pipeline/image/filter_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace drawpoint {
namespace {

constexpr std::uint32_t lanes = 8;   // outputs at a time, so that the compiler can use vectors

// The outputs of one block: lane by lane, tap by tap.
struct Block {
    double begin[lanes];    // the first input position
    double centre[lanes];   // what the filter is centred on
    double sum[lanes];
};

// What an output reads.
struct Reach {
    double scale, support;
    std::uint32_t taps;
};

Reach reach(std::uint32_t input, std::uint32_t output, ResizeFilter filter) {
    const double scale = static_cast<double>(input) / output;
    const double support = filter == ResizeFilter::antialias ? std::max(scale, 1.0) : 1.0;
    return {scale, support, static_cast<std::uint32_t>(std::min<double>(input, std::ceil(2 * support)))};
}

// What all blocks have in common.
struct Filter {
    double scale, support;
    std::uint32_t input, output, taps;
    int bits;
    bool flip;
};

#define DRAWPOINT_ALWAYS_INLINE inline __attribute__((always_inline))

DRAWPOINT_ALWAYS_INLINE void place(const Filter& filter, std::uint32_t position, std::uint32_t count, Block& block,
                                   std::uint32_t* first) {
    std::int32_t begin[lanes];
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        // Lanes beyond the last output do its work again: theirs would have no weights to divide by.
        const auto here = static_cast<std::int32_t>(std::min(position + lane, filter.output - 1));
        const std::int32_t o = filter.flip ? static_cast<std::int32_t>(filter.output) - 1 - here : here;
        block.centre[lane] = (o + 0.5) * filter.scale;
        const auto lowest = static_cast<std::int32_t>(std::max(0.0, block.centre[lane] - filter.support + 0.5));
        begin[lane] = std::min(lowest, static_cast<std::int32_t>(filter.input - filter.taps));
        block.begin[lane] = begin[lane];
    }
    for (std::uint32_t lane = 0; lane < count; ++lane)
        first[position + lane] = static_cast<std::uint32_t>(begin[lane]);
}

DRAWPOINT_ALWAYS_INLINE void triangle(const Filter& filter, Block& block, double* exact) {
    const double per_pixel = 1 / filter.support;
    std::fill_n(block.sum, lanes, 0.0);
    for (std::uint32_t tap = 0; tap < filter.taps; ++tap, exact += lanes)
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
            const double distance = std::abs(block.begin[lane] + (tap + 0.5) - block.centre[lane]);
            exact[lane] = std::max(0.0, 1 - distance * per_pixel);
            block.sum[lane] += exact[lane];
        }
}

// Rounds the running sum instead of each weight: the total is exact and no weight is off by a whole unit.
template <class Integer>
DRAWPOINT_ALWAYS_INLINE void to_fixed_point(const Filter& filter, const Block& block, const double* exact,
                                            Integer* fixed, std::size_t stride, std::uint32_t count) {
    double unit[lanes], running[lanes] = {};
    std::int32_t before[lanes] = {}, weights[lanes];
    const std::int32_t one = 1 << filter.bits;
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
        unit[lane] = one / block.sum[lane];
    for (std::uint32_t tap = 0; tap < filter.taps; ++tap, exact += lanes) {
        const bool last = tap + 1 == filter.taps;
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
            running[lane] += exact[lane];
            const auto now = last ? one : static_cast<std::int32_t>(running[lane] * unit[lane] + 0.5);
            weights[lane] = std::min<std::int32_t>(now - before[lane], std::numeric_limits<Integer>::max());
            before[lane] = now;
        }
        for (std::uint32_t lane = 0; lane < count; ++lane)
            fixed[lane * stride + tap] = static_cast<Integer>(weights[lane]);
    }
    for (std::uint32_t lane = 0; lane < count; ++lane)
        std::fill(fixed + lane * stride + filter.taps, fixed + (lane + 1) * stride, Integer{0});
}

template <class Integer>
DRAWPOINT_ALWAYS_INLINE void fill_all(const Filter& filter, double* exact, std::uint32_t* first, Integer* weights,
                                      std::size_t stride) {
    for (std::uint32_t position = 0; position < filter.output; position += lanes) {
        const std::uint32_t count = std::min(lanes, filter.output - position);
        Block block;
        place(filter, position, count, block, first);
        triangle(filter, block, exact);
        to_fixed_point(filter, block, exact, weights + position * stride, stride, count);
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
// The same sums in wider vectors.
template <class Integer>
__attribute__((target("avx2"))) void fill_avx2(const Filter& filter, double* exact, std::uint32_t* first,
                                               Integer* weights, std::size_t stride) {
    fill_all(filter, exact, first, weights, stride);
}
#endif

template <class Integer>
void fill_weights(const Filter& filter, double* exact, std::uint32_t* first, Integer* weights, std::size_t stride) {
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2"))
        return fill_avx2(filter, exact, first, weights, stride);
#endif
    fill_all(filter, exact, first, weights, stride);
}

}   // namespace

// Gives the table its sizes and memory. Returns room for the exact weights of `lanes` outputs, from which it is filled.
double* FilterTable::shape(std::uint32_t output, std::uint32_t tap_count) {
    outputs = output;
    taps = tap_count;
    stride = (taps + 3) / 4 * 4;
    wide = taps > most_narrow_taps;
    first = first_memory_.get(outputs);
    const std::size_t weights = std::size_t{outputs} * stride;
    std::byte* memory = weight_memory_.get(weights * (wide ? sizeof(std::int32_t) : sizeof(std::uint16_t)));
    wider = wide ? reinterpret_cast<std::int32_t*>(memory) : nullptr;
    narrow = wide ? nullptr : reinterpret_cast<std::uint16_t*>(memory);
    return exact_memory_.get(std::size_t{taps} * lanes);
}

std::uint32_t FilterTable::reserve(std::uint32_t input, std::uint32_t output, ResizeFilter filter) {
    shape(output, reach(input, output, filter).taps);
    return taps;
}

void FilterTable::fill(std::uint32_t input, std::uint32_t output, ResizeFilter filter, bool flip, int narrow_bits) {
    const auto [scale, support, tap_count] = reach(input, output, filter);
    double* const exact = shape(output, tap_count);
    const Filter common{scale, support, input, output, taps, wide ? wide_bits : narrow_bits, flip};
    if (wide)
        fill_weights(common, exact, first, wider, stride);
    else
        fill_weights(common, exact, first, narrow, stride);
}

}   // namespace drawpoint
