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

void triangle(Block& block, double per_pixel, std::uint32_t taps, double* exact) {
    std::fill_n(block.sum, lanes, 0.0);
    for (std::uint32_t tap = 0; tap < taps; ++tap, exact += lanes)
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
            const double distance = std::abs(block.begin[lane] + (tap + 0.5) - block.centre[lane]);
            exact[lane] = std::max(0.0, 1 - distance * per_pixel);
            block.sum[lane] += exact[lane];
        }
}

// Rounds the running sum instead of each weight: the total is exact and no weight is off by a whole unit.
template <class Integer>
void to_fixed_point(const Block& block, const double* exact, std::uint32_t taps, int bits, Integer* fixed,
                    std::size_t stride, std::uint32_t outputs) {
    double unit[lanes], running[lanes] = {};
    std::int32_t before[lanes] = {}, weights[lanes];
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
        unit[lane] = static_cast<double>(1 << bits) / block.sum[lane];
    for (std::uint32_t tap = 0; tap < taps; ++tap, exact += lanes) {
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
            running[lane] += exact[lane];
            const auto now = tap + 1 == taps ? 1 << bits : static_cast<std::int32_t>(running[lane] * unit[lane] + 0.5);
            weights[lane] = std::min<std::int32_t>(now - before[lane], std::numeric_limits<Integer>::max());
            before[lane] = now;
        }
        for (std::uint32_t lane = 0; lane < outputs; ++lane)
            fixed[lane * stride + tap] = static_cast<Integer>(weights[lane]);
    }
    for (std::uint32_t lane = 0; lane < outputs; ++lane)
        std::fill(fixed + lane * stride + taps, fixed + (lane + 1) * stride, Integer{0});
}

}   // namespace

void FilterTable::fill(std::uint32_t input, std::uint32_t output, ResizeFilter filter, bool flip, int narrow_bits) {
    const double scale = static_cast<double>(input) / output;
    const double support = filter == ResizeFilter::antialias ? std::max(scale, 1.0) : 1.0;
    outputs = output;
    taps = static_cast<std::uint32_t>(std::min<double>(input, std::ceil(2 * support)));
    stride = (taps + 3) / 4 * 4;
    wide = taps > most_narrow_taps;
    first = first_memory_.get(outputs);
    const std::size_t weights = std::size_t{outputs} * stride;
    std::byte* memory = weight_memory_.get(weights * (wide ? sizeof(std::int32_t) : sizeof(std::uint16_t)));
    wider = wide ? reinterpret_cast<std::int32_t*>(memory) : nullptr;
    narrow = wide ? nullptr : reinterpret_cast<std::uint16_t*>(memory);
    double* exact = exact_memory_.get(std::size_t{taps} * lanes);

    for (std::uint32_t position = 0; position < output; position += lanes) {
        const std::uint32_t count = std::min(lanes, output - position);
        Block block;
        for (std::uint32_t lane = 0; lane < lanes; ++lane) {
            const std::uint32_t here = position + std::min(lane, count - 1), o = flip ? output - 1 - here : here;
            block.centre[lane] = (o + 0.5) * scale;
            const auto lowest = static_cast<std::uint32_t>(std::max(0.0, block.centre[lane] - support + 0.5));
            first[here] = std::min(lowest, input - taps);
            block.begin[lane] = first[here];
        }
        triangle(block, 1 / support, taps, exact);
        const std::size_t row = std::size_t{position} * stride;
        if (wide)
            to_fixed_point(block, exact, taps, wide_bits, wider + row, stride, count);
        else
            to_fixed_point(block, exact, taps, narrow_bits, narrow + row, stride, count);
    }
}

}   // namespace drawpoint
