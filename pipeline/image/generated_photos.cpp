#include <drawpoint/pipeline/image/photo_crops.hpp>

#include <drawpoint/pipeline/rng.hpp>
#include "pipeline/image/jpeg_encoder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace drawpoint {
namespace {

constexpr ImageSize generated_size{1600, 1200};

// Smooth noise in [0, 1): random values on a grid of `cell` pixels, interpolated; octaves add ever finer detail.
class FractalNoise {
public:
    FractalNoise(std::uint64_t seed, std::uint32_t picture, double cell, double roughness)
        : seed_{seed}, picture_{picture}, cell_{cell}, roughness_{roughness} {}

    /// The noise along one row, added to `values`, which are in [0, 1) afterwards if they were 0 before.
    void add_row(std::uint32_t layer, double y, double stretch, std::vector<double>& values) const {
        double amplitude = 1, total = 0;
        for (int octave = 0; octave < octaves; ++octave, amplitude *= roughness_)
            total += amplitude;
        amplitude = 1 / total;
        double cell = cell_;
        for (std::uint32_t octave = 0; octave < octaves; ++octave, amplitude *= roughness_, cell /= 2) {
            const double row = y / cell;
            const double down = smooth(row - std::floor(row));
            const auto j = static_cast<std::uint32_t>(row);
            const double step = 1 / (cell * stretch);
            double left = 0, right = 0;
            std::uint32_t column = ~0u;
            for (std::size_t x = 0; x < values.size(); ++x) {
                const double across = static_cast<double>(x) * step;
                const auto i = static_cast<std::uint32_t>(across);
                if (i != column) {
                    column = i;
                    left = mix(at(layer, octave, i, j), at(layer, octave, i, j + 1), down);
                    right = mix(at(layer, octave, i + 1, j), at(layer, octave, i + 1, j + 1), down);
                }
                values[x] += amplitude * mix(left, right, smooth(across - i));
            }
        }
    }

private:
    static constexpr int octaves = 7;
    static double smooth(double t) { return t * t * (3 - 2 * t); }
    static double mix(double a, double b, double t) { return a + (b - a) * t; }
    double at(std::uint32_t layer, std::uint32_t octave, std::uint32_t i, std::uint32_t j) const {
        CounterRng random{seed_, picture_, (std::uint64_t{layer * 16 + octave} << 48) | (std::uint64_t{j} << 24) | i};
        return random.uniform();
    }

    std::uint64_t seed_;
    std::uint32_t picture_;
    double cell_, roughness_;
};

std::vector<std::uint8_t> generate(std::uint32_t picture, std::uint64_t seed) {
    CounterRng random{seed, picture, ~std::uint64_t{0}};
    // Four colours, a texture size, a roughness, a grain and a ripple of its own tell the pictures apart.
    std::array<std::array<double, 3>, 4> palette;
    for (auto& colour : palette)
        for (double& channel : colour)
            channel = 20 + 215 * random.uniform();
    const FractalNoise noise{seed, picture, 60 + 240 * random.uniform(), 0.45 + 0.25 * random.uniform()};
    const double stretch = std::exp2(2 * random.uniform() - 1);
    const double ripple = 4 + 14 * random.uniform(), frequency = 0.01 + 0.15 * random.uniform();
    const double slope = 2 * random.uniform() - 1, grain = 4 + 12 * random.uniform();

    const auto [width, height] = generated_size;
    std::vector<std::uint8_t> pixels;
    pixels.reserve(std::size_t{3} * width * height);
    for (std::uint32_t y = 0; y < height; ++y) {
        std::vector<double> first(width, 0.0), second(width, 0.0);
        noise.add_row(0, y, stretch, first);
        noise.add_row(1, y, 1 / stretch, second);
        CounterRng row_grain{seed + 1, picture, y};
        for (std::uint32_t x = 0; x < width; ++x) {
            const double light = ripple * std::sin(frequency * (x + slope * y) + 12 * second[x]) +
                                 grain * (static_cast<double>(row_grain.next_u32()) * 0x1p-31 - 1);
            const double a = std::clamp(2.5 * first[x] - 0.75, 0.0, 1.0),
                         b = std::clamp(2.5 * second[x] - 0.75, 0.0, 1.0);
            for (std::size_t c = 0; c < 3; ++c) {
                const double value = (palette[0][c] * (1 - a) + palette[1][c] * a) * (1 - b) +
                                     (palette[2][c] * (1 - a) + palette[3][c] * a) * b + light;
                pixels.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)));
            }
        }
    }
    return pixels;
}

}   // namespace

void make_generated_photos(const std::filesystem::path& out, std::uint32_t count, std::uint64_t seed) {
    if (count == 0)
        throw std::invalid_argument("count must be at least 1, got 0");
    std::filesystem::create_directories(out);
    for (std::uint32_t picture = 0; picture < count; ++picture) {
        const std::vector<std::uint8_t> pixels = generate(picture, seed);
        char name[32];
        std::snprintf(name, sizeof name, "generated-%02u.jpg", picture);
        write_whole_file(out / name,
                         encode_jpeg({pixels.data(), generated_size, std::size_t{3} * generated_size.width}, 92));
    }
}

}   // namespace drawpoint
