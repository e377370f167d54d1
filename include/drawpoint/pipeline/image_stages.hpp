#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <drawpoint/pipeline/image/crop.hpp>
#include <drawpoint/pipeline/image/resize.hpp>
#include <drawpoint/pipeline/sample_source.hpp>
#include <drawpoint/pipeline/stage.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>

namespace drawpoint {

/// Decodes the data set's files as JPEG: the first stage behind a data set of files.
struct DecodeJpeg {};
inline constexpr DecodeJpeg decode_jpeg{};

/// Cuts a random part by torchvision's rule and resizes it to height × width.
struct RandomResizedCrop {
    std::uint32_t height = 0, width = 0;   ///< of the result, in pixels, 1 … 65,500
    RandomCropRanges ranges{};
    ResizeFilter filter = ResizeFilter::antialias;
};

/// Cuts the central part and resizes it to height × width: the largest box of that shape that fits, times `share`. The
/// 0.875 of it is torchvision's Resize(256) and CenterCrop(224) in one.
struct CenterCrop {
    std::uint32_t height = 0, width = 0;   ///< of the result, in pixels, 1 … 65,500
    double share = 0.875;                  ///< of both sides of that box, 0 < share ≤ 1
    ResizeFilter filter = ResizeFilter::antialias;
};

/// Mirrors left to right with a probability. Right after the crop it is part of the resize, costs nothing and adds
/// nothing to the stage's name; behind a user's stage it is a pass of its own, called `flip`.
struct RandomHorizontalFlip {
    double probability = 0.5;   ///< 0 … 1
};

/// (value / 255 - mean) / standard deviation, per channel.
struct Normalize : ChannelNormalization {
    [[nodiscard]] static constexpr Normalize imagenet() noexcept { return {ChannelNormalization::imagenet()}; }
};

/// The box that `CenterCrop` cuts out of an image. Pure, O(1).
[[nodiscard]] CropBox center_crop(ImageSize image, const CenterCrop&) noexcept;

namespace detail {

/// A data set of files, as an image recipe needs it.
class EncodedImages {
public:
    virtual ~EncodedImages() = default;
    [[nodiscard]] virtual std::size_t size() const noexcept = 0;
    [[nodiscard]] virtual std::int64_t label(std::size_t index) const = 0;
    [[nodiscard]] virtual std::string path(std::size_t index) const = 0;
    virtual void read(std::size_t index, std::vector<std::byte>& contents) const = 0;
};

template <class Data>
class EncodedImagesOf final : public EncodedImages {
public:
    explicit EncodedImagesOf(std::shared_ptr<const Data> data) noexcept : data_{std::move(data)} {}
    std::size_t size() const noexcept override { return data_->size(); }
    std::int64_t label(std::size_t index) const override { return static_cast<std::int64_t>(data_->label(index)); }
    std::string path(std::size_t index) const override { return std::string{data_->path(index)}; }
    void read(std::size_t index, std::vector<std::byte>& contents) const override {
        if constexpr (requires { data_->read(index, contents); })
            data_->read(index, contents);
        else if constexpr (std::convertible_to<decltype(data_->path(index)), const char*>)
            read_file(data_->path(index), contents);
        else
            read_file(data_->path(index).c_str(), contents);
    }

private:
    std::shared_ptr<const Data> data_;
};

}   // namespace detail

/// A data set whose samples are files: `size()`, `label(i)`, `path(i)`, and, if the files do not lie at their paths,
/// `read(i, std::vector<std::byte>&)`. const calls are thread-safe. `ImageFolder` is one.
template <class D>
concept EncodedDataset = !std::derived_from<D, SampleSource> && requires(const D& data, std::size_t index) {
    { data.size() } -> std::convertible_to<std::size_t>;
    { data.label(index) } -> std::integral;
    { data.path(index) } -> std::convertible_to<std::string>;
};

/// Decoded images of different sizes: `photos | decode_jpeg`. Becomes a source of samples with the crop behind it.
class JpegImages {
public:
    explicit JpegImages(std::shared_ptr<const detail::EncodedImages> data) noexcept : data_{std::move(data)} {}
    /// A stage over every whole decoded image; from here on all of an image is decoded, not only what the crop needs.
    [[nodiscard]] JpegImages with(PixelStage stage) const;

private:
    friend class ImageRecipe;
    std::shared_ptr<const detail::EncodedImages> data_;
    std::vector<PixelStage> stages_;
};

/// Files to planar float32 [3, height, width] and their label. Adjacent image stages fuse into one timed stage that
/// writes into the batch: `read`, `decode+crop+resize+normalize`. A user's stage over pixels splits it, through the
/// worker's scratch: `read`, `decode+crop+resize`, `augment`, `normalize`. Without `Normalize` values are in [0, 1]
/// (and behind a user's stage over pixels the last stage is called `to_float`). A value; copies share the data set and
/// what it was composed of.
class ImageRecipe final : public SampleSource {
public:
    using Crop = std::variant<RandomResizedCrop, CenterCrop>;
    /// Throws std::invalid_argument naming the field and value.
    ImageRecipe(const JpegImages&, const Crop&);
    [[nodiscard]] ImageRecipe with(PixelStage) const;
    [[nodiscard]] ImageRecipe with(const RandomHorizontalFlip&) const;
    [[nodiscard]] ImageRecipe with(const Normalize&) const;

    [[nodiscard]] std::size_t size() const noexcept override;
    [[nodiscard]] SampleLayout layout() const noexcept override;
    [[nodiscard]] std::vector<std::string> stages() const override;
    [[nodiscard]] std::string path(std::uint64_t index) const override;
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override;
    void fill(SampleTask&, WorkerScratch&) const override;

private:
    struct Plan;
    explicit ImageRecipe(std::shared_ptr<const Plan> plan) noexcept : plan_{std::move(plan)} {}
    std::shared_ptr<const Plan> plan_;
};

namespace detail {
template <class S>
concept CropStage = std::same_as<S, RandomResizedCrop> || std::same_as<S, CenterCrop>;
template <class S>
concept CroppedStage = std::same_as<S, RandomHorizontalFlip> || std::same_as<S, Normalize>;
template <class S>
concept ImageStage = std::same_as<S, DecodeJpeg> || CropStage<S> || CroppedStage<S>;
template <class T>
inline constexpr bool never = false;
}   // namespace detail

/// The data set is copied, moved in from an rvalue, or shared if it is a shared_ptr; the recipe owns what it needs.
template <class Data>
    requires EncodedDataset<detail::shared_t<Data>>
[[nodiscard]] JpegImages operator|(Data&& data, DecodeJpeg) {
    using Images = detail::EncodedImagesOf<detail::shared_t<Data>>;
    return JpegImages{std::make_shared<const Images>(detail::share(std::forward<Data>(data)))};
}

template <detail::CropStage S>
[[nodiscard]] ImageRecipe operator|(const JpegImages& images, const S& crop) {
    return ImageRecipe{images, crop};
}

template <detail::CroppedStage S>
[[nodiscard]] ImageRecipe operator|(const ImageRecipe& recipe, const S& image_stage) {
    return recipe.with(image_stage);
}

// Orders that make no sense compile no further than here, and say why.

template <class Data, detail::ImageStage S>
    requires EncodedDataset<detail::shared_t<Data>> && (!std::same_as<S, DecodeJpeg>)
auto operator|(Data&&, const S&) {
    static_assert(detail::never<S>,
                  "drawpoint: files have no pixels yet: put decode_jpeg right behind the data set, as in "
                  "photos | decode_jpeg | RandomResizedCrop{224, 224}");
}

template <class Data, UserStage S>
    requires EncodedDataset<detail::shared_t<Data>>
auto operator|(Data&&, const S&) {
    static_assert(detail::never<S>,
                  "drawpoint: files have no pixels yet: put decode_jpeg between the data set and the stage");
}

template <detail::CroppedStage S>
auto operator|(const JpegImages&, const S&) {
    static_assert(detail::never<S>, "drawpoint: decoded images differ in size: put RandomResizedCrop{height, width} or "
                                    "CenterCrop{height, width} before RandomHorizontalFlip and Normalize");
}

template <detail::ImageStage S>
    requires(!detail::CroppedStage<S>)
auto operator|(const ImageRecipe&, const S&) {
    static_assert(detail::never<S>, "drawpoint: decode_jpeg and a crop stand once in a recipe, in this order, before "
                                    "RandomHorizontalFlip and Normalize");
}

template <class Source, detail::ImageStage S>
    requires(std::derived_from<detail::shared_t<Source>, SampleSource> &&
             !std::same_as<std::remove_cvref_t<Source>, ImageRecipe>)
auto operator|(Source&&, const S&) {
    static_assert(detail::never<S>,
                  "drawpoint: an image stage stands before every stage over a SampleView&, in a recipe that "
                  "begins with a data set of files and decode_jpeg");
}

}   // namespace drawpoint
