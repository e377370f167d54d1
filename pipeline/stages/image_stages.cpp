#include <drawpoint/pipeline/stages/image_stages.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <drawpoint/pipeline/stages/detail/stage_timer.hpp>

#include "pipeline/stages/file_decoder.hpp"
#include "pipeline/stages/image_plan.hpp"

namespace drawpoint {

namespace {

struct ImageScratch final : WorkerScratch {
    explicit ImageScratch(const DecodedImages::Decode& decode) : decoder{decode} {}
    std::vector<std::byte> file;
    detail::FileDecoder decoder;
    ResizeScratch resize;
    std::vector<std::uint8_t> image, crop;   // pixels for users' stages
    SampleCache::Worker worker;              // of the cache
};

void mirror(std::uint8_t* pixels, ImageSize size) {
    for (std::size_t y = 0; y < size.height; ++y) {
        std::uint8_t* row = pixels + 3 * y * size.width;
        for (std::size_t left = 0, right = size.width - 1; left < right; ++left, --right)
            std::swap_ranges(row + 3 * left, row + 3 * left + 3, row + 3 * right);
    }
}

/// Planar values to interleaved levels; of floats each is a whole level / 255.
template <class Value>
void to_pixels(const Value* planar, ImageSize size, std::uint8_t* pixels) {
    const std::size_t count = std::size_t{size.width} * size.height;
    for (std::size_t c = 0; c < 3; ++c) {
        const Value* plane = planar + c * count;
        for (std::size_t i = 0; i < count; ++i)
            if constexpr (std::same_as<Value, float>)
                pixels[3 * i + c] = static_cast<std::uint8_t>(plane[i] * 255.0F + 0.5F);
            else
                pixels[3 * i + c] = plane[i];
    }
}

template <class Value>
void to_planar(const std::uint8_t* pixels, ImageSize size, const std::array<std::array<float, 256>, 3>& values,
               Value* planar) {
    const std::size_t count = std::size_t{size.width} * size.height;
    for (std::size_t c = 0; c < 3; ++c) {
        Value* plane = planar + c * count;
        for (std::size_t i = 0; i < count; ++i)
            if constexpr (std::same_as<Value, float>)
                plane[i] = values[c][pixels[3 * i + c]];
            else
                plane[i] = pixels[3 * i + c];
    }
}

PlanarOutput output(const ChannelNormalization& normalization, float* values) { return {normalization, values}; }
PlanarOutput output(const ChannelNormalization&, std::uint8_t* levels) { return PlanarOutput{levels}; }

CropBox box_of(const RandomResizedCrop& crop, ImageSize size, CounterRng& random) {
    return random_resized_crop(size, crop.ranges, random);
}
CropBox box_of(const CenterCrop& crop, ImageSize size, CounterRng&) { return center_crop(size, crop); }

}   // namespace

CropBox center_crop(ImageSize image, const CenterCrop& crop) noexcept {
    const double aspect = static_cast<double>(crop.width) / crop.height;
    const double width = std::min<double>(image.width, image.height * aspect);
    const auto side = [&crop](double fits, std::uint32_t limit) {
        return std::clamp(static_cast<std::uint32_t>(std::lround(crop.share * fits)), 1u, limit);
    };
    const std::uint32_t w = side(width, image.width), h = side(width / aspect, image.height);
    return {(image.width - w) / 2, (image.height - h) / 2, w, h};
}

std::size_t ImageRecipe::size() const noexcept { return plan_->data->size(); }

SampleLayout ImageRecipe::layout() const noexcept {
    const ImageSize size = plan_->target();
    return {plan_->is_uint8 ? ScalarType::uint8 : ScalarType::float32, 3, {3, size.height, size.width}};
}

std::vector<std::string> ImageRecipe::stages() const { return plan_->names; }
std::string ImageRecipe::path(std::uint64_t index) const { return plan_->data->path(static_cast<std::size_t>(index)); }
const SampleReads* ImageRecipe::reads() const noexcept { return &*plan_->reads; }
const SampleCache* ImageRecipe::cache() const noexcept { return plan_->cache.get(); }

std::unique_ptr<WorkerScratch> ImageRecipe::make_scratch() const {
    auto scratch = std::make_unique<ImageScratch>(plan_->decode);
    if (plan_->cache)
        scratch->worker = plan_->cache->make_worker();
    return scratch;
}

namespace {

/// Makes one sample: the recipe's plan at work.
class Filling {
public:
    Filling(const ImageRecipe::Plan& plan, SampleTask& task, ImageScratch& scratch) noexcept
        : plan_{plan}, task_{task}, scratch_{scratch}, timer_{task} {}

    void run() {
        if (plan_.is_uint8)
            run_to(reinterpret_cast<std::uint8_t*>(task_.data.data()));
        else
            run_to(reinterpret_cast<float*>(task_.data.data()));
    }

private:
    template <class Value>
    void run_to(Value* values) {
        const auto held = begin();
        // All chance is drawn here, in this order, however the recipe is split: a stage put in between changes no crop.
        const ImageSize target = plan_.target();
        CounterRng random = detail::random_of_stage(task_, 0);
        const CropBox box = std::visit([&](const auto& crop) { return box_of(crop, size_, random); }, plan_.crop);
        const bool flipped = plan_.flip && random.uniform() < *plan_.flip;
        const bool flip_in_resize = flipped && plan_.flip_place == 0;
        const PlanarOutput out =
            output(plan_.on_crop.empty() ? plan_.normalization() : ChannelNormalization::none(), values);
        SampleCache::Place place;
        if (!held && plan_.cache)
            place = plan_.cache->reserve(task_.index, detail::rgb_bytes(size_), scratch_.worker);
        if (!held && !place && plan_.on_image.empty()) {
            // Nobody wants the whole image: only what the crop needs, with the same pixels.
            scratch_.decoder.decode(box, target, flip_in_resize, plan_.filter(), out);
            if (plan_.cache)
                timer_.begin();   // the recipe's next stage: done in one with `decode`
        } else {
            const ImageView image = whole_image(held, std::move(place));
            timer_.begin();
            resize_normalize(image, box, target, flip_in_resize, plan_.filter(), out, scratch_.resize);
        }
        if (!plan_.on_crop.empty())
            finish_crop(target, flipped, values);
    }

    /// The stage `read`, and of `decode` as much as gives the image's size.
    std::optional<SampleCache::Held> begin() {
        timer_.begin();
        const auto index = static_cast<std::size_t>(task_.index);
        *task_.target = plan_.data->label(index);
        if (plan_.cache) {
            if (const auto held = plan_.cache->find(task_.index, scratch_.worker)) {
                timer_.begin();
                size_ = {held->shape[1], held->shape[0]};
                if (size_.width == 0 || !detail::is_rgb_of(size_, held->data.size()))
                    throw std::runtime_error{
                        fmt::format("cached: an image of {} × {} pixels in {} bytes: the cache is damaged", size_.width,
                                    size_.height, held->data.size())};
                return held;
            }
        }
        const std::vector<std::byte>* file = task_.contents;
        if (file == nullptr) {
            plan_.data->read(index, scratch_.file);
            file = &scratch_.file;
        }
        task_.bytes_read = file->size();
        timer_.begin();
        scratch_.decoder.open(*file);
        size_ = scratch_.decoder.size();
        return std::nullopt;
    }

    /// The whole image after all stages over it: from the cache, or decoded, into its place in the cache if it has one.
    ImageView whole_image(const std::optional<SampleCache::Held>& held, SampleCache::Place place) {
        const std::size_t bytes = detail::rgb_bytes(size_), stages = plan_.on_image.size();
        const std::uint8_t* cached = nullptr;
        std::uint8_t* pixels = nullptr;
        if (held) {
            cached = reinterpret_cast<const std::uint8_t*>(held->data.data());
            for (std::size_t i = 0; i < plan_.cache_place; ++i)
                timer_.begin();
        } else {
            pixels = place ? reinterpret_cast<std::uint8_t*>(place.data().data()) : detail::grow(scratch_.image, bytes);
            scratch_.decoder.decode_rgb(detail::whole(size_), pixels);
            for (std::size_t i = 0; i < plan_.cache_place; ++i)
                run_stage(plan_.on_image[i], pixels, size_);
            if (place) {
                place.keep(0, {size_.height, size_.width, 3, 0});
                cached = pixels;
            }
        }
        if (cached != nullptr &&
            plan_.cache_place < stages) {   // what is cached is everybody's: changes go into a copy
            pixels = detail::grow(scratch_.image, bytes);
            std::memcpy(pixels, cached, bytes);
        }
        for (std::size_t i = plan_.cache_place; i < stages; ++i)
            run_stage(plan_.on_image[i], pixels, size_);
        return {pixels != nullptr ? pixels : cached, size_, std::size_t{3} * size_.width};
    }

    /// The stages behind the crop.
    template <class Value>
    void finish_crop(ImageSize target, bool flipped, Value* out) {
        std::uint8_t* const pixels = detail::grow(scratch_.crop, detail::rgb_bytes(target));
        to_pixels(out, target, pixels);
        for (std::size_t i = 0; i <= plan_.on_crop.size(); ++i) {
            const bool last = i == plan_.on_crop.size(), flip_here = plan_.flip && i == plan_.flip_place && i > 0;
            if (last || flip_here)
                timer_.begin();   // `flip`, `normalize` or both
            if (flipped && flip_here)
                mirror(pixels, target);
            if (!last)
                run_stage(plan_.on_crop[i], pixels, target);
        }
        to_planar(pixels, target, plan_.values, out);
    }

    void run_stage(const PixelStage& stage, std::uint8_t* pixels, ImageSize size) {
        timer_.begin();
        detail::run_stage(stage, PixelView{pixels, size, std::size_t{3} * size.width, 0, 0, {0, 0, 0}}, task_,
                          task_.stage_count);
    }

    const ImageRecipe::Plan& plan_;
    SampleTask& task_;
    ImageScratch& scratch_;
    StageTimer timer_;
    ImageSize size_;   // of the whole image
};

}   // namespace

void ImageRecipe::fill(SampleTask& task, WorkerScratch& scratch) const {
    Filling{*plan_, task, static_cast<ImageScratch&>(scratch)}.run();
}

}   // namespace drawpoint
