#include "pipeline/image/filter_table.hpp"

#include <algorithm>
#include <cmath>

namespace drawpoint {
namespace {

// Rounds the running sum instead of each weight: the total is exact and no weight is off by a whole unit.
template <class Integer>
void to_fixed_point(const double* exact, std::uint32_t count, double sum, int bits, Integer* fixed) {
    const double unit = static_cast<double>(1 << bits) / sum;
    double running = 0;
    std::int32_t before = 0;
    for (std::uint32_t tap = 0; tap < count; ++tap) {
        running += exact[tap];
        const auto now = tap + 1 == count ? 1 << bits : static_cast<std::int32_t>(running * unit + 0.5);
        fixed[tap] = static_cast<Integer>(now - before);
        before = now;
    }
}

}   // namespace

void FilterTable::fill(std::uint32_t input, std::uint32_t output, ResizeFilter filter, bool flip) {
    const double scale = static_cast<double>(input) / output;
    const double support = filter == ResizeFilter::antialias ? std::max(scale, 1.0) : 1.0;
    outputs = output;
    taps = static_cast<std::uint32_t>(std::min<double>(input, std::ceil(2 * support)));
    stride = (taps + 3) / 4 * 4;
    wide = taps > most_narrow_taps;
    first = first_memory_.get(outputs);
    const std::size_t weights = std::size_t{outputs} * stride;
    std::byte* memory = weight_memory_.get(weights * (wide ? sizeof(std::int32_t) : sizeof(std::int16_t)));
    wider = wide ? reinterpret_cast<std::int32_t*>(memory) : nullptr;
    narrow = wide ? nullptr : reinterpret_cast<std::int16_t*>(memory);
    double* exact = exact_memory_.get(taps);

    const double per_pixel = 1 / support;
    for (std::uint32_t position = 0; position < output; ++position) {
        const std::uint32_t o = flip ? output - 1 - position : position;
        const double centre = (o + 0.5) * scale;
        const auto lowest = static_cast<std::uint32_t>(std::max(0.0, centre - support + 0.5));
        const std::uint32_t begin = std::min(lowest, input - taps);
        double sum = 0;
        for (std::uint32_t tap = 0; tap < taps; ++tap) {
            exact[tap] = std::max(0.0, 1 - std::abs(begin + tap + 0.5 - centre) * per_pixel);
            sum += exact[tap];
        }
        first[position] = begin;
        const std::size_t row = std::size_t{position} * stride;
        if (wide) {
            to_fixed_point(exact, taps, sum, wide_bits, wider + row);
            std::fill(wider + row + taps, wider + row + stride, 0);
        } else {
            to_fixed_point(exact, taps, sum, narrow_bits, narrow + row);
            std::fill(narrow + row + taps, narrow + row + stride, std::int16_t{0});
        }
    }
}

}   // namespace drawpoint
