#include <drawpoint/pipeline/image_stages.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/stage_timer.hpp>

namespace drawpoint {

/// What an image recipe does: files, stages over whole images, the crop, what follows on the cropped pixels in the
/// order given, and the normalisation.
struct ImageRecipe::Plan {
    std::shared_ptr<const detail::EncodedImages> data;
    std::vector<PixelStage> on_image;
    Crop crop;
    std::optional<double> flip;   // its probability; as part of the resize, or where `flip_place` says
    std::vector<PixelStage> on_crop;
    std::size_t flip_place = 0;   // stages of on_crop before it
    std::optional<ChannelNormalization> normalize;

    std::vector<std::string> names;                   // of the timed stages
    std::array<std::array<float, 256>, 3> values{};   // of each channel's levels, for pixels that a stage has seen

    void finish();
    [[nodiscard]] ImageSize target() const {
        return std::visit([](const auto& to) { return ImageSize{to.width, to.height}; }, crop);
    }
    [[nodiscard]] ChannelNormalization normalization() const {
        return normalize.value_or(ChannelNormalization::none());
    }
};

namespace {

struct ImageScratch final : WorkerScratch {
    std::vector<std::byte> file;
    JpegDecoder decoder;
    ResizeScratch resize;
    std::vector<std::uint8_t> image, crop;   // pixels for users' stages
};

std::uint8_t* grow(std::vector<std::uint8_t>& pixels, ImageSize size) {
    const std::size_t bytes = std::size_t{3} * size.width * size.height;
    if (pixels.size() < bytes)
        pixels.resize(bytes);
    return pixels.data();
}

void mirror(std::uint8_t* pixels, ImageSize size) {
    for (std::size_t y = 0; y < size.height; ++y) {
        std::uint8_t* row = pixels + 3 * y * size.width;
        for (std::size_t left = 0, right = size.width - 1; left < right; ++left, --right)
            std::swap_ranges(row + 3 * left, row + 3 * left + 3, row + 3 * right);
    }
}

/// Planar values in [0, 1], each a whole level / 255, to interleaved levels.
void to_pixels(const float* planar, ImageSize size, std::uint8_t* pixels) {
    const std::size_t count = std::size_t{size.width} * size.height;
    for (std::size_t c = 0; c < 3; ++c) {
        const float* plane = planar + c * count;
        for (std::size_t i = 0; i < count; ++i)
            pixels[3 * i + c] = static_cast<std::uint8_t>(plane[i] * 255.0F + 0.5F);
    }
}

void to_planar(const std::uint8_t* pixels, ImageSize size, const std::array<std::array<float, 256>, 3>& values,
               float* planar) {
    const std::size_t count = std::size_t{size.width} * size.height;
    for (std::size_t c = 0; c < 3; ++c) {
        float* plane = planar + c * count;
        for (std::size_t i = 0; i < count; ++i)
            plane[i] = values[c][pixels[3 * i + c]];
    }
}

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

JpegImages JpegImages::with(PixelStage stage) const {
    JpegImages longer = *this;
    longer.stages_.push_back(std::move(stage));
    return longer;
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
        fuse("to_float");
    flush();

    const ChannelNormalization n = normalization();
    for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t level = 0; level < 256; ++level)
            values[c][level] = (static_cast<float>(level) / 255.0F - n.mean[c]) / n.standard_deviation[c];
}

ImageRecipe::ImageRecipe(const JpegImages& images, const Crop& crop) {
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
    plan->on_image = images.stages_;
    plan->crop = crop;
    plan->finish();
    plan_ = std::move(plan);
}

ImageRecipe ImageRecipe::with(PixelStage stage) const {
    if (plan_->normalize)
        throw std::invalid_argument{
            fmt::format("stage {}: it takes pixels, so it stands before Normalize", stage.name())};
    auto plan = std::make_shared<Plan>(*plan_);
    plan->on_crop.push_back(std::move(stage));
    plan->finish();
    return ImageRecipe{std::move(plan)};
}

ImageRecipe ImageRecipe::with(const RandomHorizontalFlip& flip) const {
    if (!(flip.probability >= 0 && flip.probability <= 1))
        throw std::invalid_argument{
            fmt::format("RandomHorizontalFlip: probability must be 0 to 1, got {}", flip.probability)};
    if (plan_->flip || plan_->normalize)
        throw std::invalid_argument{"RandomHorizontalFlip: it stands once in a recipe, before Normalize"};
    auto plan = std::make_shared<Plan>(*plan_);
    plan->flip = flip.probability;
    plan->flip_place = plan->on_crop.size();
    plan->finish();
    return ImageRecipe{std::move(plan)};
}

ImageRecipe ImageRecipe::with(const Normalize& normalize) const {
    if (plan_->normalize)
        throw std::invalid_argument{"Normalize: it stands once in a recipe"};
    for (const float deviation : normalize.standard_deviation)
        if (!(deviation > 0))
            throw std::invalid_argument{
                fmt::format("Normalize: standard_deviation must be above 0, got {}", deviation)};
    auto plan = std::make_shared<Plan>(*plan_);
    plan->normalize = normalize;
    plan->finish();
    return ImageRecipe{std::move(plan)};
}

std::size_t ImageRecipe::size() const noexcept { return plan_->data->size(); }

SampleLayout ImageRecipe::layout() const noexcept {
    const ImageSize size = plan_->target();
    return {ScalarType::float32, 3, {3, size.height, size.width}};
}

std::vector<std::string> ImageRecipe::stages() const { return plan_->names; }

std::string ImageRecipe::path(std::uint64_t index) const { return plan_->data->path(static_cast<std::size_t>(index)); }

std::unique_ptr<WorkerScratch> ImageRecipe::make_scratch() const { return std::make_unique<ImageScratch>(); }

void ImageRecipe::fill(SampleTask& task, WorkerScratch& worker_scratch) const {
    const Plan& plan = *plan_;
    auto& scratch = static_cast<ImageScratch&>(worker_scratch);
    const auto index = static_cast<std::size_t>(task.index);
    auto* const out = reinterpret_cast<float*>(task.data.data());
    StageTimer timer{task};

    timer.begin();
    plan.data->read(index, scratch.file);
    task.bytes_read = scratch.file.size();
    *task.target = plan.data->label(index);

    timer.begin();
    scratch.decoder.open(scratch.file);
    // All chance is drawn here, in this order, however the recipe is split: a stage put in between changes no crop.
    const ImageSize size = scratch.decoder.size(), target = plan.target();
    CounterRng random = detail::random_of_stage(task, 0);
    const CropBox box = std::visit([&](const auto& crop) { return box_of(crop, size, random); }, plan.crop);
    const bool flipped = plan.flip && random.uniform() < *plan.flip;
    const bool flip_in_resize = flipped && plan.flip_place == 0;
    const ResizeFilter filter = std::visit([](const auto& crop) { return crop.filter; }, plan.crop);
    const ChannelNormalization first = plan.on_crop.empty() ? plan.normalization() : ChannelNormalization::none();

    const auto run = [&](const PixelStage& stage, std::uint8_t* pixels, ImageSize of) {
        timer.begin();
        PixelView view{pixels,     of,         std::size_t{3} * of.width,
                       task.index, task.epoch, detail::random_of_stage(task, task.stage_count)};
        stage(view);
    };
    if (plan.on_image.empty()) {
        scratch.decoder.decode(box, target, flip_in_resize, filter, first, out);
    } else {
        std::uint8_t* const pixels = grow(scratch.image, size);
        scratch.decoder.decode_rgb({0, 0, size.width, size.height}, pixels);
        for (const PixelStage& stage : plan.on_image)
            run(stage, pixels, size);
        timer.begin();
        resize_normalize({pixels, size, std::size_t{3} * size.width}, box, target, flip_in_resize, filter, first,
                         scratch.resize, out);
    }
    if (plan.on_crop.empty())
        return;
    std::uint8_t* const pixels = grow(scratch.crop, target);
    to_pixels(out, target, pixels);
    for (std::size_t i = 0; i <= plan.on_crop.size(); ++i) {
        const bool last = i == plan.on_crop.size();
        if (last || (plan.flip && i == plan.flip_place && i > 0))
            timer.begin();   // `flip`, `normalize` or both
        if (flipped && i == plan.flip_place && i > 0)
            mirror(pixels, target);
        if (!last)
            run(plan.on_crop[i], pixels, target);
    }
    to_planar(pixels, target, plan.values, out);
}

}   // namespace drawpoint
