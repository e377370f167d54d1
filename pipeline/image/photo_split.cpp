#include "pipeline/image/photo_split.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace drawpoint {
namespace {

std::uint32_t band_length(std::uint32_t side, std::uint32_t crop, double share) {
    return share == 0 ? 0 : std::max(crop, static_cast<std::uint32_t>(std::lround(side * share)));
}

}   // namespace

PhotoSplit split_photograph(ImageSize photograph, ImageSize crop, double share, bool at_begin) {
    const auto [width, height] = photograph;
    const std::uint32_t columns = band_length(width, crop.width, share), rows = band_length(height, crop.height, share);
    const bool columns_fit = std::uint64_t{columns} + crop.width <= width && crop.height <= height;
    const bool rows_fit = std::uint64_t{rows} + crop.height <= height && crop.width <= width;
    if (!columns_fit && !rows_fit)
        throw ImageError("too small for training and held-out crops of " + std::to_string(crop.width) + 'x' +
                         std::to_string(crop.height) + ": " + std::to_string(width) + 'x' + std::to_string(height));
    const double columns_cost = static_cast<double>(columns) / width, rows_cost = static_cast<double>(rows) / height;
    const bool same_cost = std::abs(columns_cost - rows_cost) < 0.01;   // lengths are whole pixels
    const bool along_width = columns_fit && (!rows_fit || (same_cost ? width >= height : columns_cost < rows_cost));
    if (along_width) {
        const std::uint32_t begin = at_begin ? 0 : width - columns;
        return {{at_begin ? columns : 0, 0, width - columns, height}, {begin, 0, columns, height}};
    }
    const std::uint32_t begin = at_begin ? 0 : height - rows;
    return {{0, at_begin ? rows : 0, width, height - rows}, {0, begin, width, rows}};
}

CropBox random_window(CropBox region, ImageSize crop, CounterRng& random) {
    const double fit =
        std::min(static_cast<double>(region.width) / crop.width, static_cast<double>(region.height) / crop.height);
    const double scale = std::exp(random.uniform() * std::log(std::max(1.0, 0.7 * fit)));
    const std::uint32_t width =
        std::clamp(static_cast<std::uint32_t>(std::lround(crop.width * scale)), crop.width, region.width);
    const std::uint32_t height =
        std::clamp(static_cast<std::uint32_t>(std::lround(crop.height * scale)), crop.height, region.height);
    const auto x = static_cast<std::uint32_t>(random.uniform() * (region.width - width + 1.0));
    const auto y = static_cast<std::uint32_t>(random.uniform() * (region.height - height + 1.0));
    return {region.x + x, region.y + y, width, height};
}

}   // namespace drawpoint
