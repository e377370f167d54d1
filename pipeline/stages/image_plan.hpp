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

/// What an image recipe reads: the files of images that its cache does not hold.
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

/// What an image recipe does: files, their decoder, stages over whole images with perhaps a cache among them, the crop,
/// what follows on the cropped pixels in the order given, and the normalisation.
struct ImageRecipe::Plan {
    std::shared_ptr<const detail::EncodedImages> data;
    DecodedImages::Decode decode;
    std::vector<PixelStage> on_image;
    std::shared_ptr<SampleCache> cache;
    std::size_t cache_place = 0;   // stages of on_image before it
    Crop crop;
    std::optional<double> flip;   // its probability; as part of the resize, or where `flip_place` says
    std::vector<PixelStage> on_crop;
    std::size_t flip_place = 0;   // stages of on_crop before it
    std::optional<ChannelNormalization> normalize;

    std::vector<std::string> names;                   // of the timed stages
    std::array<std::array<float, 256>, 3> values{};   // of each channel's levels, for pixels that a stage has seen
    std::optional<detail::ImageReads> reads;

    void finish();
    [[nodiscard]] ImageSize target() const {
        return std::visit([](const auto& to) { return ImageSize{to.width, to.height}; }, crop);
    }
    [[nodiscard]] ResizeFilter filter() const {
        return std::visit([](const auto& to) { return to.filter; }, crop);
    }
    [[nodiscard]] ChannelNormalization normalization() const {
        return normalize.value_or(ChannelNormalization::none());
    }
};

}   // namespace drawpoint
