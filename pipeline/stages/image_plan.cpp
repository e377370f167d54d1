#include "pipeline/stages/image_plan.hpp"

#include <fmt/format.h>

#include "pipeline/stages/cache_of.hpp"
#include "pipeline/stages/file_decoder.hpp"

namespace drawpoint {

namespace {

void check(const RandomResizedCrop& crop) {
    const RandomCropRanges& r = crop.ranges;
    if (!(r.scale_min > 0 && r.scale_min <= r.scale_max))
        throw std::invalid_argument{
            fmt::format("RandomResizedCrop: scale must be 0 < min <= max, got {} and {}", r.scale_min, r.scale_max)};
    if (!(r.ratio_min > 0 && r.ratio_min <= r.ratio_max))
        throw std::invalid_argument{
            fmt::format("RandomResizedCrop: ratio must be 0 < min <= max, got {} and {}", r.ratio_min, r.ratio_max)};
}

void check(const CenterCrop& crop) {
    if (!(crop.share > 0 && crop.share <= 1))
        throw std::invalid_argument{fmt::format("CenterCrop: share must be above 0 and at most 1, got {}", crop.share)};
}

constexpr const char* name_of(const RandomResizedCrop&) { return "RandomResizedCrop"; }
constexpr const char* name_of(const CenterCrop&) { return "CenterCrop"; }

/// What ends the recipe, or may.
const char* end_of(const ImageRecipe::Plan& plan) { return plan.is_uint8 ? "to_uint8" : "Normalize"; }

/// What a cache would keep of image `index`; of one that cannot be decoded: nothing.
void add_image(detail::Fingerprint& fingerprint, const detail::EncodedImages& data, const DecodedImages::Decode& decode,
               const std::vector<PixelStage>& stages, std::uint64_t index) {
    try {
        std::vector<std::byte> file;
        data.read(static_cast<std::size_t>(index), file);
        detail::FileDecoder decoder{decode};
        decoder.open(file);
        const ImageSize size = decoder.size();
        std::vector<std::uint8_t> pixels(detail::rgb_bytes(size));
        decoder.decode_rgb(detail::whole(size), pixels.data());
        SampleTask task;
        task.index = index;
        task.stage_count = 2;
        for (const PixelStage& stage : stages)
            detail::run_stage(stage, PixelView{pixels.data(), size, std::size_t{3} * size.width, 0, 0, {0, 0, 0}}, task,
                              ++task.stage_count);
        fingerprint.add(std::uint64_t{size.width});
        fingerprint.add(std::as_bytes(std::span{pixels}));
    } catch (const std::exception&) {
        fingerprint.add("none");
    }
}

}   // namespace

DecodedImages DecodedImages::with(PixelStage stage) const {
    DecodedImages longer = *this;
    longer.stages_.push_back(std::move(stage));
    return longer;
}

DecodedImages DecodedImages::with(const Cached& stage) const {
    if (cache_)
        throw std::invalid_argument{"cached: it stands once in a recipe"};
    for (const PixelStage& before : stages_)
        if (const std::string part = detail::random_part_of(before); !part.empty())
            throw std::invalid_argument{detail::refused_by_cache(part)};
    DecodedImages kept = *this;
    kept.cache_place_ = stages_.size();
    kept.cache_ = detail::cache_of(stage, data_->size(), [this](detail::Fingerprint& fingerprint) {
        fingerprint.add("images");
        for (const PixelStage& before : stages_)
            fingerprint.add(before.name());
        bool has_files = true;
        for (std::size_t index = 0; index < data_->size(); ++index)
            has_files &= fingerprint.add_file(data_->location(index), data_->path(index));
        for (const std::uint64_t index : detail::probes(data_->size()))
            if (data_->size() > 0)
                add_image(fingerprint, *data_, decode_, stages_, index);
        return has_files;
    });
    return kept;
}

void ImageRecipe::Plan::finish() {
    names = {"read"};
    std::string fused = "decode";   // the image stages since the last user's stage
    const auto add = [this](const std::string& name) {
        names.push_back(name);
        detail::check_stage_count(names.size(), name);
    };
    const auto flush = [&] {
        if (!fused.empty())
            add(fused);
        fused.clear();
    };
    const auto fuse = [&](const char* name) { fused += (fused.empty() ? "" : "+") + std::string{name}; };
    if (cache)
        flush();
    for (const PixelStage& stage : on_image) {
        flush();
        add(stage.name());
    }
    fuse("crop+resize");
    for (std::size_t i = 0; i <= on_crop.size(); ++i) {
        if (flip && i == flip_place && i > 0)
            fuse("flip");
        if (i == on_crop.size())
            break;
        flush();
        add(on_crop[i].name());
    }
    if (normalize)
        fuse("normalize");
    else if (!on_crop.empty())
        fuse(is_uint8 ? "to_planar" : "to_float");
    flush();

    const ChannelNormalization n = normalization();
    for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t level = 0; level < 256; ++level)
            values[c][level] = (static_cast<float>(level) / 255.0F - n.mean[c]) / n.standard_deviation[c];
    reads.emplace(*data, cache.get());
}

ImageRecipe::ImageRecipe(const DecodedImages& images, const Crop& crop) {
    std::visit(
        [](const auto& to) {
            for (const std::uint32_t side : {to.height, to.width})
                if (side < 1 || side > 65'500)
                    throw std::invalid_argument{
                        fmt::format("{}: height and width must be 1 to 65500, got {}", name_of(to), side)};
            check(to);
        },
        crop);
    auto plan = std::make_shared<Plan>();
    plan->data = images.data_;
    plan->decode = images.decode_;
    plan->on_image = images.stages_;
    plan->cache = images.cache_;
    plan->cache_place = images.cache_place_;
    plan->crop = crop;
    plan->finish();
    plan_ = std::move(plan);
}

ImageRecipe ImageRecipe::with(PixelStage stage) const {
    if (plan_->is_ended())
        throw std::invalid_argument{
            fmt::format("stage {}: it takes pixels, so it stands before {}", stage.name(), end_of(*plan_))};
    auto plan = std::make_shared<Plan>(*plan_);
    plan->on_crop.push_back(std::move(stage));
    plan->finish();
    return ImageRecipe{std::move(plan)};
}

ImageRecipe ImageRecipe::with(const RandomHorizontalFlip& flip) const {
    if (!(flip.probability >= 0 && flip.probability <= 1))
        throw std::invalid_argument{
            fmt::format("RandomHorizontalFlip: probability must be 0 to 1, got {}", flip.probability)};
    if (plan_->flip || plan_->is_ended())
        throw std::invalid_argument{
            fmt::format("RandomHorizontalFlip: it stands once in a recipe, before {}", end_of(*plan_))};
    auto plan = std::make_shared<Plan>(*plan_);
    plan->flip = flip.probability;
    plan->flip_place = plan->on_crop.size();
    plan->finish();
    return ImageRecipe{std::move(plan)};
}

ImageRecipe ImageRecipe::with(const ToUint8&) const {
    if (plan_->is_ended())
        throw std::invalid_argument{"to_uint8: it stands once in a recipe, and cannot stand behind Normalize"};
    auto plan = std::make_shared<Plan>(*plan_);
    plan->is_uint8 = true;
    plan->finish();
    return ImageRecipe{std::move(plan)};
}

ImageRecipe ImageRecipe::with(const Normalize& normalize) const {
    if (plan_->is_ended())
        throw std::invalid_argument{plan_->is_uint8 ? "Normalize: it cannot stand behind to_uint8"
                                                    : "Normalize: it stands once in a recipe"};
    for (const float deviation : normalize.standard_deviation)
        if (!(deviation > 0))
            throw std::invalid_argument{
                fmt::format("Normalize: standard_deviation must be above 0, got {}", deviation)};
    auto plan = std::make_shared<Plan>(*plan_);
    plan->normalize = normalize;
    plan->finish();
    return ImageRecipe{std::move(plan)};
}

std::string ImageRecipe::random_part() const {
    if (std::holds_alternative<RandomResizedCrop>(plan_->crop))
        return "RandomResizedCrop (cached(bytes) can stand before it)";
    if (plan_->flip)
        return "RandomHorizontalFlip";
    for (const auto* stages : {&plan_->on_image, &plan_->on_crop})
        for (const PixelStage& stage : *stages)
            if (std::string part = detail::random_part_of(stage); !part.empty())
                return part;
    return {};
}

}   // namespace drawpoint
