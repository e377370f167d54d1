#include "plain_decode.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace drawpoint::bench {
namespace {

constexpr int bits = 22;

[[noreturn]] void fail(const JpegReader& reader) { throw std::runtime_error{reader.failure.message}; }

std::uint8_t to_byte(int sum) { return static_cast<std::uint8_t>(std::clamp(sum >> bits, 0, 255)); }

}   // namespace

PlainDecode::PlainDecode() {
    if (!create_reader(reader_))
        fail(reader_);
}

PlainDecode::~PlainDecode() { destroy_reader(reader_); }

ImageView PlainDecode::rows(std::uint32_t y, std::uint32_t height, std::uint32_t width) {
    const std::size_t stride = std::size_t{3} * width;
    if (pixels_.size() < stride * height)
        pixels_.resize(stride * height);
    if (!read_rows(reader_, y, height, pixels_.data(), stride))
        fail(reader_);
    return {pixels_.data(), {width, height}, stride};
}

ImageView PlainDecode::whole(std::span<const std::byte> file) {
    if (!read_header(reader_, file.data(), file.size()))
        fail(reader_);
    std::uint32_t x = 0, width = reader_.info.image_width;
    if (!start_columns(reader_, x, width))
        fail(reader_);
    return rows(0, reader_.info.image_height, width);
}

ImageView PlainDecode::window(std::span<const std::byte> file, CropBox crop) {
    if (!read_header(reader_, file.data(), file.size()))
        fail(reader_);
    const std::uint32_t left = crop.x - std::min(crop.x, 1u);
    std::uint32_t x = left, width = std::min(reader_.info.image_width, crop.x + crop.width + 1) - left;
    if (!start_columns(reader_, x, width))
        fail(reader_);
    ImageView view = rows(crop.y, crop.height, width);
    view.pixels += std::size_t{3} * (crop.x - x);
    view.size.width = crop.width;
    return view;
}

void PlainDecode::Weights::fill(std::uint32_t input, std::uint32_t output) {
    const double scale = static_cast<double>(input) / output, support = std::max(scale, 1.0);
    taps = static_cast<int>(std::ceil(support)) * 2 + 1;
    first.resize(output);
    count.resize(output);
    values.resize(output * static_cast<std::size_t>(taps));
    std::vector<double> exact(static_cast<std::size_t>(taps));
    for (std::size_t o = 0; o < output; ++o) {
        const double centre = (static_cast<double>(o) + 0.5) * scale;
        first[o] = std::max(0, static_cast<int>(centre - support + 0.5));
        count[o] = std::min(static_cast<int>(input), static_cast<int>(centre + support + 0.5)) - first[o];
        double sum = 0;
        for (int tap = 0; tap < count[o]; ++tap) {
            double& weight = exact[static_cast<std::size_t>(tap)];
            weight = std::max(0.0, 1 - std::abs((first[o] + tap - centre + 0.5) / support));
            sum += weight;
        }
        for (int tap = 0; tap < count[o]; ++tap)
            values[o * static_cast<std::size_t>(taps) + static_cast<std::size_t>(tap)] =
                static_cast<int>(exact[static_cast<std::size_t>(tap)] / sum * (1 << bits) + 0.5);
    }
}

void PlainDecode::resize(const ImageView& image, CropBox crop, ImageSize target, bool flip,
                         const ChannelNormalization& normalization, float* planar_out) {
    across_.fill(crop.width, target.width);
    down_.fill(crop.height, target.height);
    const std::size_t stride = std::size_t{3} * target.width;
    narrow_.resize(stride * crop.height);
    for (std::size_t y = 0; y < crop.height; ++y) {
        const std::uint8_t* const row = image.pixels + (crop.y + y) * image.stride + std::size_t{3} * crop.x;
        for (std::size_t x = 0; x < target.width; ++x) {
            const int* const weights = across_.values.data() + x * static_cast<std::size_t>(across_.taps);
            const std::uint8_t* from = row + 3 * across_.first[x];
            int red = 1 << (bits - 1), green = red, blue = red;
            for (int tap = 0; tap < across_.count[x]; ++tap, from += 3) {
                red += weights[tap] * from[0];
                green += weights[tap] * from[1];
                blue += weights[tap] * from[2];
            }
            std::uint8_t* const to = narrow_.data() + y * stride + 3 * x;
            to[0] = to_byte(red);
            to[1] = to_byte(green);
            to[2] = to_byte(blue);
        }
    }
    float scale[3], bias[3];
    for (std::size_t c = 0; c < 3; ++c) {
        scale[c] = 1 / (255 * normalization.standard_deviation[c]);
        bias[c] = -normalization.mean[c] / normalization.standard_deviation[c];
    }
    const std::size_t plane = std::size_t{target.width} * target.height;
    for (std::size_t y = 0; y < target.height; ++y) {
        const int* const weights = down_.values.data() + y * static_cast<std::size_t>(down_.taps);
        sums_.assign(stride, 1 << (bits - 1));
        for (int tap = 0; tap < down_.count[y]; ++tap) {
            const std::uint8_t* const from = narrow_.data() + static_cast<std::size_t>(down_.first[y] + tap) * stride;
            for (std::size_t i = 0; i < stride; ++i)
                sums_[i] += weights[tap] * from[i];
        }
        for (std::size_t x = 0; x < target.width; ++x)
            for (std::size_t c = 0; c < 3; ++c)
                planar_out[c * plane + y * target.width + (flip ? target.width - 1 - x : x)] =
                    static_cast<float>(to_byte(sums_[3 * x + c])) * scale[c] + bias[c];
    }
}

}   // namespace drawpoint::bench
