#include "pipeline/image/own_jpeg/idct.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace drawpoint::own_jpeg {
namespace {

// One row or column: 8 values from in[0], in[step], …
void transform(const std::int16_t* in, std::size_t step, int shift, std::int32_t* out) {
    const std::int32_t half = 1 << (shift - 1);
    const std::int32_t sum = (in[0] + in[4 * step]) * 8192 + half, difference = (in[0] - in[4 * step]) * 8192 + half;
    const auto& e = even_coefficients;
    const std::int32_t e0 = in[2 * step] * e[0][0] + in[6 * step] * e[0][1];
    const std::int32_t e1 = in[2 * step] * e[1][0] + in[6 * step] * e[1][1];
    const std::int32_t even[4] = {sum + e0, difference + e1, difference - e1, sum - e0};
    for (int i = 0; i < 4; ++i) {
        const auto& c = odd_coefficients[i];
        const std::int32_t odd = in[step] * c[0] + in[3 * step] * c[1] + in[5 * step] * c[2] + in[7 * step] * c[3];
        out[i] = (even[i] + odd) >> shift;
        out[7 - i] = (even[i] - odd) >> shift;
    }
}

int block(std::int16_t* values, const std::int16_t* quantization, int highest, SampleRows rows) {
    if (highest == 0) {
        const int sample = (values[0] * quantization[0] + 4) >> 3;
        values[0] = 0;
        for (std::size_t r = 0; r < 8; ++r)
            std::memset(rows.first + r * rows.stride, std::clamp(sample + 128, 0, 255), 8);
        return std::abs(sample);
    }
    std::int16_t sums[64], column[8];
    for (std::size_t c = 0; c < 8; ++c) {
        std::int32_t out[8];
        for (std::size_t r = 0; r < 8; ++r)
            column[r] = static_cast<std::int16_t>(values[r * 16 + c] * quantization[r * 16 + c]);
        transform(column, 1, first_shift, out);
        for (std::size_t r = 0; r < 8; ++r)
            sums[r * 8 + c] = static_cast<std::int16_t>(std::clamp(out[r], -32768, 32767));
    }
    int largest = 0;
    for (std::size_t r = 0; r < 8; ++r) {
        std::int32_t out[8];
        transform(sums + r * 8, 1, second_shift, out);
        std::memset(values + r * 16, 0, 8 * sizeof *values);
        for (std::size_t c = 0; c < 8; ++c) {
            largest = std::max(largest, std::abs(out[c]));
            rows.first[r * rows.stride + c] = static_cast<std::uint8_t>(std::clamp(out[c] + 128, 0, 255));
        }
    }
    return largest;
}

}   // namespace

int PortableIdct::pair(CoefficientPair& coefficients, const QuantizationPair& quantization, int highest,
                       SampleRows first, SampleRows second) noexcept {
    return std::max(block(coefficients.values, quantization.values, highest, first),
                    block(coefficients.values + 8, quantization.values + 8, highest, second));
}

}   // namespace drawpoint::own_jpeg
