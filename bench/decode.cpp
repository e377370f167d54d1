// JPEG files in memory to RandomResizedCrop(224), flipped, normalised, planar float32, on one thread: our ways and
// those of others, image by image.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <drawpoint/bench/suite/suite.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/image/resize.hpp>

#include "contenders/plain_decode.hpp"
#include "decode_photos.hpp"
#include "photos.hpp"

namespace {

using namespace drawpoint;
using bench::Photo;
using bench::PlainDecode;

constexpr std::size_t batch = 64;
constexpr ImageSize target = bench::decode_target;
constexpr std::size_t values = std::size_t{3} * target.width * target.height;
constexpr ChannelNormalization normalization = ChannelNormalization::imagenet();

using Decode = std::function<void(const Photo&, float*)>;

void decode_plainly(PlainDecode& plain, const Photo& photo, float* out) {
    plain.resize(plain.whole(photo.file), photo.crop, target, photo.flip, normalization, out);
}

/// Decodes all photographs in a run, and measures each.
class DecodeTask final : public bench::Task {
public:
    /// `makes_samples`: whether it writes what decode_plainly() does, within a level of 255 and 0.15 in the mean.
    DecodeTask(const std::vector<Photo>& photos, Decode decode, bool makes_samples)
        : photos_{photos},
          decode_{std::move(decode)},
          makes_samples_{makes_samples},
          // As in a loader: aligned, larger than the cache, and touched before.
          slots_{static_cast<float*>(std::aligned_alloc(4096, batch * values * sizeof(float))), &std::free},
          seconds_(photos.size()) {
        std::fill_n(slots_.get(), batch * values, 0.0F);
    }

    std::uint64_t items() const noexcept override { return photos_.size(); }

    void run(std::size_t number) override {
        auto before = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < photos_.size(); ++i) {
            decode_(photos_[i], slots_.get() + i % batch * values);
            const auto now = std::chrono::steady_clock::now();
            if (number != 0)
                seconds_[i] += std::chrono::duration<float>{now - before}.count();
            before = now;
        }
        runs_ += number != 0;
    }

    /// Nothing, as two decoders do not agree in every bit. Throws if they differ by more than they may.
    std::optional<std::uint64_t> digest() override {
        if (!makes_samples_)
            return std::nullopt;
        PlainDecode plain;
        std::vector<float> expected(values);
        double worst = 0, sum = 0;   // levels
        for (const Photo& photo : photos_) {
            decode_plainly(plain, photo, expected.data());
            decode_(photo, slots_.get());
            for (std::size_t i = 0; i < values; ++i) {
                const double level = 255.0 * normalization.standard_deviation[i / (values / 3)];
                const double difference = std::abs(static_cast<double>(slots_.get()[i]) - expected[i]) * level;
                worst = std::max(worst, difference);
                sum += difference;
            }
        }
        if (const double mean = sum / static_cast<double>(photos_.size() * values); worst >= 1.01 || mean > 0.15)
            throw std::runtime_error{fmt::format(
                "pixels differ by up to {:.2f} levels, {:.3f} in the mean; 1 and 0.15 are allowed", worst, mean)};
        return std::nullopt;
    }

    std::vector<bench::Metric> metrics() const override {
        return {{.name = "an image", .unit = bench::Metric::Unit::seconds, .compared = true, .by_item = true}};
    }

    bench::Turn results() override {
        double sum = 0;
        for (float& seconds : seconds_) {
            seconds /= static_cast<float>(runs_);
            sum += static_cast<double>(seconds);
        }
        return {.values = {sum / static_cast<double>(photos_.size())}, .by_item = {std::move(seconds_)}};
    }

private:
    const std::vector<Photo>& photos_;
    Decode decode_;
    bool makes_samples_;
    std::unique_ptr<float, decltype(&std::free)> slots_;
    std::vector<float> seconds_;
    std::size_t runs_ = 0;
};

}   // namespace

int main(int argc, char** argv) try {
    bench::Suite suite{"decode"};
    const std::string images = suite.take_option(argc, argv, "--images", "how many of them [64]");
    const bench::SuitePhotos data{suite, argc, argv};
    const std::size_t most = images.empty() ? 64 : std::strtoul(images.c_str(), nullptr, 10);
    if (most == 0)
        throw std::invalid_argument{"--images must be a whole number above 0, got " + images};
    const std::vector<Photo> photos = bench::load_photos(data.folder(), most);

    PlainDecode plain;
    ResizeScratch scratch;
    JpegDecoder library{JpegBackend::library}, own{JpegBackend::own};
    const auto with = [](JpegDecoder& decoder) {
        return [&decoder](const Photo& photo, float* out) {
            decoder.open(photo.file);
            decoder.decode(photo.crop, target, photo.flip, ResizeFilter::antialias, {normalization, out});
        };
    };
    const auto add = [&](std::string name, Decode decode, bool makes_samples = true) {
        suite.add_task(std::move(name), [&photos, decode, makes_samples] {
            return std::make_unique<DecodeTask>(photos, decode, makes_samples);
        });
    };
    // Whole images by libjpeg-turbo, then Pillow's resize in plain C++, or nothing; or only the crop's window.
    add("plain", [&](const Photo& photo, float* out) { decode_plainly(plain, photo, out); });
    add("whole", [&](const Photo& photo, float*) { (void)plain.whole(photo.file); }, false);
    add("window", [&](const Photo& photo, float* out) {
        const ImageView view = plain.window(photo.file, photo.crop);
        resize_normalize(view, {0, 0, view.size.width, view.size.height}, target, photo.flip, ResizeFilter::antialias,
                         {normalization, out}, scratch);
    });
    add("library", with(library));   // as --jpeg-decoder library: its planes, our colour and resize
    add("own", with(own));
    return bench::main(suite, argc, argv);
} catch (const std::exception& error) {
    fmt::print(stderr, "drawpoint: bench decode: {}\n", error.what());
    return 1;
}
