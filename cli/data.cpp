#include "cli/data.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>
#include <span>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/array_data.hpp"
#include <drawpoint/pipeline/stages/generated_rows.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>

namespace drawpoint::cli {
namespace {

/// A part of the data set, shuffled differently in each epoch.
class RandomPart final : public Sampler, public OrderParts {
public:
    RandomPart(std::vector<std::uint64_t> indices, std::uint64_t seed)
        : indices_{std::move(indices)}, random_{indices_.size(), seed} {}
    [[nodiscard]] std::size_t size() const noexcept override { return indices_.size(); }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override {
        random_.order(epoch, order);
        look_up(order);
    }
    [[nodiscard]] const OrderParts* parts() const noexcept override {
        return random_.parts() != nullptr ? this : nullptr;
    }
    void part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
              std::span<std::uint64_t> part) const noexcept override {
        random_.part(epoch, first, stride, part);
        look_up(part);
    }

private:
    void look_up(std::span<std::uint64_t> order) const noexcept {
        for (std::uint64_t& index : order)
            index = indices_[index];
    }

    std::vector<std::uint64_t> indices_;
    RandomSampler random_;
};

/// The indices 0 … n - 1 in two parts. Those held out are spread evenly, so a data set sorted by class has some of
/// each.
struct Split {
    std::vector<std::uint64_t> train, valid;
};

Split split(std::size_t n, double share) {
    const auto held_out_before = [share](std::uint64_t i) { return std::floor(static_cast<double>(i) * share); };
    Split parts;
    for (std::uint64_t i = 0; i < n; ++i)
        (held_out_before(i + 1) > held_out_before(i) ? parts.valid : parts.train).push_back(i);
    if (parts.train.empty() || parts.valid.empty())
        throw Failure{fmt::format("--valid {:g} of {} samples leaves nothing to validate on", share, n)};
    return parts;
}

std::shared_ptr<const SampleSource> with_faults(auto recipe, const ProfileOptions& options) {
    if (std::ranges::none_of(options.inject, [](const Injection& injection) { return is_of_source(injection.kind); }))
        return std::make_shared<const decltype(recipe)>(std::move(recipe));
    try {
        return inject(std::move(recipe), options.inject, options.seed);
    } catch (const std::invalid_argument& error) {
        const std::string_view what = error.what();
        throw UsageError{fmt::format("{}{}", what.starts_with("--inject") ? "" : "--inject: ", what)};
    }
}

/// Throws Failure unless both have the same classes: labels are positions in the list of class names.
template <class Images>
void check_same_classes(const Images& train, const std::string& train_path, const Images& valid,
                        const std::string& valid_path) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < train.num_classes(); ++i)
        names.insert(train.class_name(i));
    for (std::size_t i = 0; i < valid.num_classes(); ++i)
        if (names.erase(valid.class_name(i)) == 0)
            throw Failure{
                fmt::format("--valid {}: class '{}' is not in {}", valid_path, valid.class_name(i), train_path)};
    if (!names.empty())
        throw Failure{fmt::format("--valid {}: class '{}' of {} is missing", valid_path, *names.begin(), train_path)};
}

/// The format of --data, never `automatic`.
DataFormat format_of(const ProfileOptions& options) {
    if (options.data.value)
        return DataFormat::synthetic;
    if (options.format.value != DataFormat::automatic)
        return options.format.value;
    if (names_tar_shards(options.data.text))
        return DataFormat::tar;
    return array_format_of(options.data.text).value_or(DataFormat::folder);
}

/// Refuses options that have no effect on data of this format, or that it cannot do without.
void check_useful(const ProfileOptions& options, DataFormat format) {
    using enum DataFormat;
    const std::string &data_text = options.data.text, &valid = options.valid.text, &targets = options.targets;
    const bool is_images = format == folder || format == tar;
    if (options.cache.value != 0 && !is_images)
        throw UsageError{fmt::format("--cache {} keeps decoded images, and --data {} ({}) has none to decode",
                                     options.cache.text, data_text, name_of(format))};
    if (options.validates_elsewhere() && format == synthetic)
        throw UsageError{
            fmt::format("--valid {} needs --data to be a folder; a share works with synthetic data", valid)};
    if (options.validates_elsewhere() && !targets.empty() && !is_images)
        throw UsageError{fmt::format("--valid {} needs targets of its own, which --targets {} does not give: give "
                                     "--valid the share to hold out",
                                     valid, targets)};
    if (!targets.empty() && format != npy && format != idx)
        throw UsageError{fmt::format("--targets {} is of a .npy or idx file, and --data {} is none ({})", targets,
                                     data_text, name_of(format))};
    if (options.record.value && format != raw)
        throw UsageError{fmt::format("--record {} needs --format raw, {}", options.record.text,
                                     options.format.value == automatic ? "too" : "got " + options.format.text)};
    if (!options.record.value && format == raw)
        throw UsageError{"--format raw needs --record, e.g. --record label:uint8+uint8:3x32x32"};
    for (const Injection& injection : options.inject)
        if (injection.kind == InjectionKind::collate)
            throw UsageError{fmt::format("--inject collate=x{:g}: no stage collates: samples of --data {} all have one "
                                         "shape and are made in their batch",
                                         injection.factor, data_text)};
}

/// Throws Failure saying why data of this format cannot be read from `path`, and what to try. `option`: --data, --valid
/// or --targets. `guessed`: the format was not given.
void check_path(std::string_view option, const std::string& path, DataFormat format, bool guessed) {
    namespace fs = std::filesystem;
    std::error_code unknown;
    const fs::file_status status = fs::status(path, unknown);
    if (!fs::exists(status)) {
        if (format != DataFormat::tar || path.find('{') == path.npos)   // {0000..0146} names many
            throw Failure{fmt::format("{} {}: {}", option, path,
                                      unknown && unknown != std::errc::no_such_file_or_directory
                                          ? unknown.message()
                                          : "no such file or folder")};
        return;
    }
    const bool folder = fs::is_directory(status);
    if (!folder && !fs::is_regular_file(status))
        throw Failure{fmt::format("{} {}: neither a file nor a folder", option, path)};
    if (!folder && format == DataFormat::folder && guessed)
        throw Failure{fmt::format("{} {}: not a folder, and its name tells no format: give --format tar, idx, npy, or "
                                  "raw with --record, e.g. --record label:uint8+uint8:3x32x32",
                                  option, path)};
    if (!folder && format == DataFormat::cifar)
        throw Failure{fmt::format("{} {}: not a folder: --format cifar takes the one that holds data_batch_1.bin or "
                                  "train.bin",
                                  option, path)};
    if (folder && (format == DataFormat::npy || format == DataFormat::raw || option == "--targets"))
        throw Failure{fmt::format("{} {}: a folder, and --format {} takes a file", option, path, name_of(format))};
}

/// Makes training data of image files and, where --valid asks for it, validation data of these or of others.
template <class Images>
void open_images(Data& data, const ProfileOptions& options, std::shared_ptr<const Images> images) {
    const std::uint32_t side = options.image_size;
    const DecodeImage decode{.backend = options.jpeg_decoder};
    const CenterCrop center{.height = side, .width = side, .filter = options.resize_filter.value};
    const RandomResizedCrop random{.height = side, .width = side, .filter = options.resize_filter.value};
    const std::uint64_t budget = options.cache.value;
    const DecodedImages decoded = budget == 0 ? images | decode : images | decode | cached(budget);
    data.classes = images->num_classes();
    data.normalizes_on_device = options.on_device();   // so only a quarter of the bytes are copied
    const auto ended = [&options](const ImageRecipe& recipe) {
        return with_faults(options.on_device() ? recipe | to_uint8 : recipe | Normalize::imagenet(), options);
    };
    data.train = ended(decoded | random | RandomHorizontalFlip{});
    if (options.valid.value)   // shares the cache, if there is one
        data.valid = ended(decoded | center);
    if (options.validates_elsewhere()) {
        const auto held_out = std::make_shared<const Images>(options.valid.text);
        check_same_classes(*images, options.data.text, *held_out, options.valid.text);
        data.valid = ended(held_out | decode | center);
    }
}

/// Opens samples and classes. Returns the sizes of the shards if they can only be read forward, else nothing.
std::vector<std::uint64_t> open_samples(Data& data, const ProfileOptions& options, DataFormat format) {
    if (format == DataFormat::folder) {
        open_images(data, options, std::make_shared<const ImageFolder>(options.data.text));
        return {};
    }
    if (format == DataFormat::tar) {
        const auto shards = std::make_shared<const TarShards>(options.data.text);
        open_images(data, options, shards);
        return shards->random_access() ? std::vector<std::uint64_t>{} : shards->shard_sizes();
    }
    if (format == DataFormat::synthetic) {
        const SyntheticImages images{static_cast<std::size_t>(*options.data.value), 10, options.image_size,
                                     options.seed};
        data.classes = images.num_classes();
        data.train = with_faults(images, options);
    } else {
        ArraySet arrays = open_arrays(options, format, options.data.text, true);
        data.classes = arrays.classes;
        data.train = with_faults(std::move(arrays.rows), options);
        if (options.validates_elsewhere())
            data.valid = with_faults(open_arrays(options, format, options.valid.text, false).rows, options);
    }
    if (options.valid.value)
        data.valid = data.train;
    return {};
}

void add_samplers(Data& data, const ProfileOptions& options, const std::vector<std::uint64_t>& shard_sizes) {
    if (!shard_sizes.empty() && options.valid.value)
        throw UsageError{
            fmt::format("--valid {} needs shards that can be read at random; those of {} are compressed: name "
                        "other shards to validate on",
                        options.valid.text, options.data.text)};
    if (!shard_sizes.empty()) {
        data.train_sampler = std::make_unique<ShardSampler>(shard_sizes, options.seed);
    } else if (options.valid.value) {
        Split parts = split(data.train->size(), *options.valid.value);
        data.train_sampler = std::make_unique<RandomPart>(std::move(parts.train), options.seed);
        data.valid_sampler = std::make_unique<FixedSampler>(std::move(parts.valid));
    } else {
        data.train_sampler = std::make_unique<RandomSampler>(data.train->size(), options.seed);
    }
    if (data.valid && !data.valid_sampler)
        data.valid_sampler = std::make_unique<SequentialSampler>(data.valid->size());
}

}   // namespace

Data open_data(const ProfileOptions& options) {
    const DataFormat format = format_of(options);
    check_useful(options, format);
    if (format != DataFormat::synthetic)
        check_path("--data", options.data.text, format, options.format.value == DataFormat::automatic);
    if (options.validates_elsewhere())
        check_path("--valid", options.valid.text, format, false);
    if (!options.targets.empty())
        check_path("--targets", options.targets, format, false);
    Data data;
    const std::vector<std::uint64_t> shard_sizes = open_samples(data, options, format);
    add_samplers(data, options, shard_sizes);
    if (const SampleLayout layout = data.train->layout();
        options.needs_images() && (layout.rank != 3 || layout.shape[0] != 3))
        throw Failure{fmt::format("--model {} takes images of three channels; samples of {} are {}: try --model mlp",
                                  options.model.text, options.data.text,
                                  fmt::join(std::span{layout.shape}.first(layout.rank), "x"))};
    return data;
}

}   // namespace drawpoint::cli
