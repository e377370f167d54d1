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

#include <drawpoint/pipeline/stages/cached.hpp>
#include <drawpoint/pipeline/image/crop.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/image/resize.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/stages/stage.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>

namespace drawpoint {

/// Decodes the data set's files, all of which must be JPEG (another one fails as a sample): the first stage behind a
/// data set of files.
struct DecodeJpeg {
    JpegBackend backend = JpegBackend::automatic;
};
inline constexpr DecodeJpeg decode_jpeg{};

/// Decodes the data set's files, whose first bytes say whether they are JPEG, PNG or WebP.
struct DecodeImage {
    JpegBackend backend = JpegBackend::automatic;   ///< for the JPEG files among them
};
inline constexpr DecodeImage decode_image{};

/// Crops a random part by torchvision's rule and resizes it to height × width.
struct RandomResizedCrop {
    std::uint32_t height = 0, width = 0;   ///< of the result, in pixels, 1 … 65,500
    RandomCropRanges ranges{};
    ResizeFilter filter = ResizeFilter::antialias;
};

/// Crops the centre and resizes it to height × width. The crop is the largest box of that aspect ratio, with its sides
/// scaled by `share`; a share of 0.875 is torchvision's Resize(256) and CenterCrop(224) in one.
struct CenterCrop {
    std::uint32_t height = 0, width = 0;   ///< of the result, in pixels, 1 … 65,500
    double share = 0.875;                  ///< scale of that box's sides, 0 < share ≤ 1
    ResizeFilter filter = ResizeFilter::antialias;
};

/// Mirrors left to right with a probability. Directly behind the crop it is part of the resize, costs nothing and does
/// not appear in the stage's name; behind a user's stage it is a pass of its own, named `flip`.
struct RandomHorizontalFlip {
    double probability = 0.5;   ///< 0 … 1
};

/// (value / 255 - mean) / standard deviation, per channel.
struct Normalize : ChannelNormalization {
    [[nodiscard]] static constexpr Normalize imagenet() noexcept { return {ChannelNormalization::imagenet()}; }
};

/// Leaves the values as they are decoded, uint8 0 … 255: a quarter of the bytes of floats. A device normalises them
/// (`DeviceOptions::normalize`).
struct ToUint8 {};
inline constexpr ToUint8 to_uint8{};

/// The box that `CenterCrop` crops from an image. Pure, O(1).
[[nodiscard]] CropBox center_crop(ImageSize image, const CenterCrop&) noexcept;

namespace detail {

/// A data set of files, type-erased for image recipes.
class EncodedImages {
public:
    virtual ~EncodedImages() = default;
    [[nodiscard]] virtual std::size_t size() const noexcept = 0;
    [[nodiscard]] virtual std::int64_t label(std::size_t index) const = 0;
    [[nodiscard]] virtual std::string path(std::size_t index) const = 0;
    virtual void read(std::size_t index, std::vector<std::byte>& contents) const = 0;
    [[nodiscard]] virtual std::optional<FileRange> location(std::size_t index) const noexcept = 0;
};

template <class Data>
class EncodedImagesOf final : public EncodedImages {
public:
    explicit EncodedImagesOf(std::shared_ptr<const Data> data) noexcept : data_{std::move(data)} {}
    std::size_t size() const noexcept override { return data_->size(); }
    std::int64_t label(std::size_t index) const override { return static_cast<std::int64_t>(data_->label(index)); }
    std::string path(std::size_t index) const override { return std::string{data_->path(index)}; }
    void read(std::size_t index, std::vector<std::byte>& contents) const override {
        if constexpr (reads_itself)
            data_->read(index, contents);
        else if constexpr (has_c_path)
            read_file(data_->path(index), contents);
        else
            read_file(data_->path(index).c_str(), contents);
    }
    std::optional<FileRange> location(std::size_t index) const noexcept override {
        if constexpr (requires {
                          { data_->location(index) } -> std::convertible_to<std::optional<FileRange>>;
                      })
            return data_->location(index);
        else if constexpr (!reads_itself && has_c_path)
            return FileRange{.path = data_->path(index)};
        else if constexpr (!reads_itself && std::is_lvalue_reference_v<decltype(data_->path(index))>)
            return FileRange{.path = data_->path(index).c_str()};
        else
            return std::nullopt;   // the path must not be a temporary
    }

private:
    static constexpr bool reads_itself =
        requires(const Data& data, std::vector<std::byte>& contents) { data.read(std::size_t{}, contents); };
    static constexpr bool has_c_path =
        std::convertible_to<decltype(std::declval<const Data&>().path(std::size_t{})), const char*>;

    std::shared_ptr<const Data> data_;
};

}   // namespace detail

/// A data set whose samples are files: `size()`, `label(i)`, `path(i)` and, if the data is not a file at that path,
/// `read(i, std::vector<std::byte>&)` and optionally `location(i)`, a FileRange whose path is valid as long as the data
/// set. const calls must be thread-safe. `ImageFolder` is one.
template <class D>
concept EncodedDataset = !std::derived_from<D, SampleSource> && requires(const D& data, std::size_t index) {
    { data.size() } -> std::convertible_to<std::size_t>;
    { data.label(index) } -> std::integral;
    { data.path(index) } -> std::convertible_to<std::string>;
};

/// Decoded images of different sizes: `photos | decode_image`. A crop behind it turns it into a source of samples.
class DecodedImages {
public:
    using Decode = std::variant<DecodeJpeg, DecodeImage>;
    DecodedImages(std::shared_ptr<const detail::EncodedImages> data, const Decode& decode) noexcept
        : data_{std::move(data)}, decode_{decode} {}
    /// Adds a stage over every whole decoded image. The image is then decoded in full, not only where the crop needs
    /// it.
    [[nodiscard]] DecodedImages with(PixelStage stage) const;
    /// Caches the images as they are at this point. Throws as `CachedSamples`.
    [[nodiscard]] DecodedImages with(const Cached&) const;

private:
    friend class ImageRecipe;
    std::shared_ptr<const detail::EncodedImages> data_;
    Decode decode_;
    std::vector<PixelStage> stages_;
    std::shared_ptr<SampleCache> cache_;
    std::size_t cache_place_ = 0;   // number of stages before the cache
};

/// A source of planar [3, height, width] images and labels from files, float32 unless it ends in `to_uint8`. Adjacent
/// image stages fuse into one timed stage that writes into the batch: `read`, `decode+crop+resize+normalize`. A user's
/// stage over pixels splits it, through the worker's scratch: `read`, `decode+crop+resize`, `augment`, `normalize`. So
/// does a cache: `read`, `decode`, `crop+resize+normalize`; a cached image takes no time in the stages before the
/// cache, and one that the cache has no room for is made in one go, all of it counted as `decode`. The pixels are the
/// same with and without a cache. Without `Normalize` and `to_uint8`, values are in [0, 1]. The last stage after a
/// user's stage over pixels is then named `to_float`, with `to_uint8` `to_planar`. A value; copies share the data set
/// and the stages.
class ImageRecipe final : public SampleSource {
public:
    using Crop = std::variant<RandomResizedCrop, CenterCrop>;
    /// Throws std::invalid_argument naming the field and value.
    ImageRecipe(const DecodedImages&, const Crop&);
    [[nodiscard]] ImageRecipe with(PixelStage) const;
    [[nodiscard]] ImageRecipe with(const RandomHorizontalFlip&) const;
    [[nodiscard]] ImageRecipe with(const Normalize&) const;
    [[nodiscard]] ImageRecipe with(const ToUint8&) const;

    [[nodiscard]] std::size_t size() const noexcept override;
    [[nodiscard]] SampleLayout layout() const noexcept override;
    [[nodiscard]] std::vector<std::string> stages() const override;
    [[nodiscard]] std::string path(std::uint64_t index) const override;
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override;
    void fill(SampleTask&, WorkerScratch&) const override;
    [[nodiscard]] const SampleReads* reads() const noexcept override;
    [[nodiscard]] std::string random_part() const override;
    [[nodiscard]] const SampleCache* cache() const noexcept override;

    struct Plan;   // pipeline/stages/image_plan.hpp

private:
    explicit ImageRecipe(std::shared_ptr<const Plan> plan) noexcept : plan_{std::move(plan)} {}
    std::shared_ptr<const Plan> plan_;
};

namespace detail {
template <class S>
concept DecodeStage = std::same_as<S, DecodeJpeg> || std::same_as<S, DecodeImage>;
template <class S>
concept CropStage = std::same_as<S, RandomResizedCrop> || std::same_as<S, CenterCrop>;
template <class S>
concept CroppedStage = std::same_as<S, RandomHorizontalFlip> || std::same_as<S, Normalize> || std::same_as<S, ToUint8>;
template <class S>
concept ImageStage = DecodeStage<S> || CropStage<S> || CroppedStage<S>;
template <class T>
inline constexpr bool never = false;
}   // namespace detail

/// The data set is copied, moved in from an rvalue, or shared if it is a shared_ptr; the recipe owns what it needs.
template <class Data, detail::DecodeStage S>
    requires EncodedDataset<detail::shared_t<Data>>
[[nodiscard]] DecodedImages operator|(Data&& data, const S& decode) {
    using Images = detail::EncodedImagesOf<detail::shared_t<Data>>;
    return DecodedImages{std::make_shared<const Images>(detail::share(std::forward<Data>(data))), decode};
}

[[nodiscard]] inline DecodedImages operator|(const DecodedImages& images, const Cached& stage) {
    return images.with(stage);
}

template <detail::CropStage S>
[[nodiscard]] ImageRecipe operator|(const DecodedImages& images, const S& crop) {
    return ImageRecipe{images, crop};
}

template <detail::CroppedStage S>
[[nodiscard]] ImageRecipe operator|(const ImageRecipe& recipe, const S& image_stage) {
    return recipe.with(image_stage);
}

// Stages in an order that makes no sense fail here, with a message that says why.

template <class Data, detail::ImageStage S>
    requires EncodedDataset<detail::shared_t<Data>> && (!detail::DecodeStage<S>)
auto operator|(Data&&, const S&) {
    static_assert(detail::never<S>,
                  "drawpoint: files have no pixels yet: put decode_image right behind the data set, as in "
                  "photos | decode_image | RandomResizedCrop{224, 224}");
}

template <class Data, UserStage S>
    requires EncodedDataset<detail::shared_t<Data>>
auto operator|(Data&&, const S&) {
    static_assert(detail::never<S>,
                  "drawpoint: files have no pixels yet: put decode_image between the data set and the stage");
}

template <class Data>
    requires EncodedDataset<detail::shared_t<Data>>
auto operator|(Data&&, const Cached&) {
    static_assert(detail::never<Data>,
                  "drawpoint: the system keeps files as they are: put cached(bytes) behind decode_image");
}

template <detail::CroppedStage S>
auto operator|(const DecodedImages&, const S&) {
    static_assert(detail::never<S>, "drawpoint: decoded images differ in size: put RandomResizedCrop{height, width} or "
                                    "CenterCrop{height, width} before RandomHorizontalFlip, Normalize and to_uint8");
}

template <detail::ImageStage S>
    requires(!detail::CroppedStage<S>)
auto operator|(const ImageRecipe&, const S&) {
    static_assert(detail::never<S>, "drawpoint: decode_image and a crop stand once in a recipe, in this order, before "
                                    "RandomHorizontalFlip, Normalize and to_uint8");
}

template <class Source, detail::ImageStage S>
    requires(std::derived_from<detail::shared_t<Source>, SampleSource> &&
             !std::same_as<std::remove_cvref_t<Source>, ImageRecipe>)
auto operator|(Source&&, const S&) {
    static_assert(detail::never<S>,
                  "drawpoint: an image stage stands before every stage over a SampleView&, and before a cache of "
                  "finished samples, in a recipe that begins with a data set of files and decode_image");
}

}   // namespace drawpoint
