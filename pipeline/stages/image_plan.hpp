#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <drawpoint/pipeline/stages/image_stages.hpp>

namespace drawpoint {

namespace detail {

/// The reads of an image recipe: the files of those images that its cache does not hold.
class ImageReads final : public SampleReads {
public:
    ImageReads(const EncodedImages& data, const SampleCache* cache) noexcept : data_{&data}, cache_{cache} {}
    void read(std::uint64_t index, std::vector<std::byte>& contents) const override {
        data_->read(static_cast<std::size_t>(index), contents);
    }
    std::optional<FileRange> location(std::uint64_t index) const noexcept override {
        return data_->location(static_cast<std::size_t>(index));
    }
    bool wants(std::uint64_t index) const noexcept override { return cache_ == nullptr || !cache_->holds(index); }

private:
    const EncodedImages* data_;
    const SampleCache* cache_;
};

}   // namespace detail

/// The steps of an image recipe: files, their decoder, stages over whole images (a cache may be among them), the crop,
/// stages over the cropped pixels in their order, and the normalisation.
struct ImageRecipe::Plan {
    std::shared_ptr<const detail::EncodedImages> data;
    DecodedImages::Decode decode;
    std::vector<PixelStage> on_image;
    std::shared_ptr<SampleCache> cache;
    std::size_t cache_place = 0;   // number of stages of on_image before the cache
    Crop crop;
    std::optional<double> flip;   // its probability; done in the resize, or at `flip_place`
    std::vector<PixelStage> on_crop;
    std::size_t flip_place = 0;   // number of stages of on_crop before the flip
    std::optional<ChannelNormalization> normalize;
    bool is_uint8 = false;   // the values stay levels

    std::vector<std::string> names;   // of the timed stages
    // Normalised value of each level and channel, after a user's stage
    std::array<std::array<float, 256>, 3> values{};
    std::optional<detail::ImageReads> reads;

    void finish();
    [[nodiscard]] ImageSize target() const {
        return std::visit([](const auto& to) { return ImageSize{to.width, to.height}; }, crop);
    }
    [[nodiscard]] ResizeFilter filter() const {
        return std::visit([](const auto& to) { return to.filter; }, crop);
    }
    /// Whether a stage that ends it is there.
    [[nodiscard]] bool is_ended() const noexcept { return normalize || is_uint8; }
    [[nodiscard]] ChannelNormalization normalization() const {
        return normalize.value_or(ChannelNormalization::none());
    }
};

}   // namespace drawpoint
