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

/// A part of the data set, shuffled anew each epoch.
class RandomPart final : public Sampler {
public:
    RandomPart(std::vector<std::uint64_t> indices, std::uint64_t seed)
        : indices_{std::move(indices)}, random_{indices_.size(), seed} {}
    [[nodiscard]] std::size_t size() const noexcept override { return indices_.size(); }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override {
        random_.order(epoch, order);
        for (std::uint64_t& index : order)
            index = indices_[index];
    }

private:
    std::vector<std::uint64_t> indices_;
    RandomSampler random_;
};

/// The two parts of 0 … n - 1: those held out lie evenly in it, so every class of a sorted data set is among them.
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

std::shared_ptr<const SampleSource> with_faults(auto recipe, const std::vector<Injection>& injections,
                                                std::uint64_t seed) {
    if (std::ranges::none_of(injections, [](const Injection& injection) { return is_of_source(injection.kind); }))
        return std::make_shared<const decltype(recipe)>(std::move(recipe));
    try {
        return inject(std::move(recipe), injections, seed);
    } catch (const std::invalid_argument& error) {
        const std::string_view what = error.what();
        throw UsageError{fmt::format("{}{}", what.starts_with("--inject") ? "" : "--inject: ", what)};
    }
}

/// Validation labels are numbers of the training folder's classes, so both folders must have the same.
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

std::string_view format_of(const ProfileOptions& options) {
    if (options.format != "auto")
        return options.format;
    if (names_tar_shards(options.data))
        return "tar";
    return array_format_of(options.data).value_or("folder");
}

/// Says of a path that `format` cannot be read from why, and what to try. `option`: --data, --valid or --targets.
void check_path(std::string_view option, const std::string& path, std::string_view format, bool guessed) {
    namespace fs = std::filesystem;
    std::error_code unknown;
    const fs::file_status status = fs::status(path, unknown);
    if (!fs::exists(status)) {
        if (format != "tar" || path.find('{') == path.npos)   // {0000..0146} names many
            throw Failure{fmt::format("{} {}: {}", option, path,
                                      unknown && unknown != std::errc::no_such_file_or_directory
                                          ? unknown.message()
                                          : "no such file or folder")};
        return;
    }
    const bool folder = fs::is_directory(status);
    if (!folder && !fs::is_regular_file(status))
        throw Failure{fmt::format("{} {}: neither a file nor a folder", option, path)};
    if (!folder && format == "folder" && guessed)
        throw Failure{fmt::format("{} {}: not a folder, and its name tells no format: give --format tar, idx, npy, or "
                                  "raw with --record, e.g. --record label:uint8+uint8:3x32x32",
                                  option, path)};
    if (!folder && format == "cifar")
        throw Failure{fmt::format("{} {}: not a folder: --format cifar takes the one that holds data_batch_1.bin or "
                                  "train.bin",
                                  option, path)};
    if (folder && (format == "npy" || format == "raw" || option == "--targets"))
        throw Failure{fmt::format("{} {}: a folder, and --format {} takes a file", option, path, format)};
}

/// A data set of image files, and the one to validate on, which `open` opens.
template <class Images>
void open_images(Data& data, const ProfileOptions& options, const std::vector<Injection>& injections,
                 std::shared_ptr<const Images> images, bool validates_elsewhere, auto open) {
    const auto side = static_cast<std::uint32_t>(options.image_size);
    const auto seed = static_cast<std::uint64_t>(options.seed);
    const auto filter = options.resize_filter == "bilinear" ? ResizeFilter::bilinear : ResizeFilter::antialias;
    const DecodeImage decode{.backend = options.jpeg_backend()};
    const CenterCrop center{.height = side, .width = side, .filter = filter};
    const RandomResizedCrop random{.height = side, .width = side, .filter = filter};
    const std::uint64_t budget = options.cache_bytes();
    const DecodedImages decoded = budget == 0 ? images | decode : images | decode | cached(budget);
    data.classes = images->num_classes();
    data.train = with_faults(decoded | random | RandomHorizontalFlip{} | Normalize::imagenet(), injections, seed);
    if (options.valid_share())   // the cache, if there is one, is the same
        data.valid = with_faults(decoded | center | Normalize::imagenet(), injections, seed);
    if (validates_elsewhere) {
        const auto held_out = open(options.valid);
        check_same_classes(*images, options.data, *held_out, options.valid);
        data.valid = with_faults(held_out | decode | center | Normalize::imagenet(), injections, seed);
    }
}

}   // namespace

std::vector<Injection> injections_of(const ProfileOptions& options) {
    std::vector<Injection> injections;
    for (const std::string& text : options.inject) {
        try {
            injections.push_back(parse_injection(text));
        } catch (const std::invalid_argument& error) {
            throw UsageError{error.what()};
        }
        const InjectionKind kind = injections.back().kind;
        if (std::ranges::count(injections, kind, &Injection::kind) > 1)
            throw UsageError{fmt::format("--inject {}: {} is given twice", text, to_string(kind))};
    }
    const auto has = [&](InjectionKind kind) {
        return std::ranges::find(injections, kind, &Injection::kind) != injections.end();
    };
    if (has(InjectionKind::compute_jitter) && !has(InjectionKind::compute) &&
        !(options.model == "none" && options.compute_ms > 0))
        throw UsageError{"--inject compute-jitter needs --inject compute, or --model none with --compute-ms"};
    return injections;
}

Data open_data(const ProfileOptions& options, const std::vector<Injection>& injections) {
    Data data;
    const auto side = static_cast<std::uint32_t>(options.image_size);
    const auto seed = static_cast<std::uint64_t>(options.seed);
    const auto share = options.valid_share();
    std::vector<std::uint64_t> shard_sizes;   // of shards that can only be read forward
    const bool has_folder = !share && options.valid != "none" && !options.valid.empty();
    const std::string_view format = options.synthetic() ? "synthetic" : format_of(options);
    if (options.cache_bytes() != 0 && format != "folder" && format != "tar")
        throw UsageError{fmt::format("--cache {} keeps decoded images, and --data {} ({}) has none to decode",
                                     options.cache, options.data, format)};
    if (has_folder && !options.targets.empty() && format != "folder" && format != "tar" && format != "synthetic")
        throw UsageError{fmt::format("--valid {} needs targets of its own, which --targets {} does not give: give "
                                     "--valid the share to hold out",
                                     options.valid, options.targets)};
    if (!options.targets.empty() && format != "npy" && format != "idx")
        throw UsageError{fmt::format("--targets {} is of a .npy or idx file, and --data {} is none ({})",
                                     options.targets, options.data, format)};
    if (!options.record.empty() && format != "raw")
        throw UsageError{options.format == "auto"
                             ? fmt::format("--record {} needs --format raw, too", options.record)
                             : fmt::format("--record {} needs --format raw, got {}", options.record, options.format)};
    if (format == "raw")
        check_record(options);
    for (const Injection& injection : injections)
        if (injection.kind == InjectionKind::collate)
            throw UsageError{fmt::format("--inject collate=x{:g}: no stage collates: samples of --data {} all have one "
                                         "shape and are made in their batch",
                                         injection.factor, options.data)};
    if (format != "synthetic")
        check_path("--data", options.data, format, options.format == "auto");
    if (has_folder && format != "synthetic")
        check_path("--valid", options.valid, format, false);
    if (!options.targets.empty())
        check_path("--targets", options.targets, format, false);
    if (const auto count = options.synthetic()) {
        if (has_folder)
            throw UsageError{fmt::format("--valid {} needs --data to be a folder; a share works with synthetic data",
                                         options.valid)};
        const SyntheticImages images{static_cast<std::size_t>(*count), 10, side, seed};
        data.classes = images.num_classes();
        data.train = with_faults(images, injections, seed);
        data.valid = share ? data.train : nullptr;
    } else if (format == "folder") {
        open_images(data, options, injections, std::make_shared<const ImageFolder>(options.data), has_folder,
                    [](auto& where) { return std::make_shared<const ImageFolder>(where); });
    } else if (format == "tar") {
        const auto shards = std::make_shared<const TarShards>(options.data);
        open_images(data, options, injections, shards, has_folder,
                    [](auto& where) { return std::make_shared<const TarShards>(where); });
        shard_sizes = shards->random_access() ? std::vector<std::uint64_t>{} : shards->shard_sizes();
    } else {
        ArraySet arrays = open_arrays(options, format, options.data, true);
        data.classes = arrays.classes;
        data.train = with_faults(std::move(arrays.rows), injections, seed);
        if (share)
            data.valid = data.train;
        if (has_folder)
            data.valid = with_faults(open_arrays(options, format, options.valid, false).rows, injections, seed);
    }
    if (!shard_sizes.empty() && share)
        throw UsageError{
            fmt::format("--valid {} needs shards that can be read at random; those of {} are compressed: name "
                        "other shards to validate on",
                        options.valid, options.data)};
    if (!shard_sizes.empty()) {
        data.train_sampler = std::make_unique<ShardSampler>(shard_sizes, seed);
    } else if (share) {
        Split parts = split(data.train->size(), *share);
        data.train_sampler = std::make_unique<RandomPart>(std::move(parts.train), seed);
        data.valid_sampler = std::make_unique<FixedSampler>(std::move(parts.valid));
    } else {
        data.train_sampler = std::make_unique<RandomSampler>(data.train->size(), seed);
    }
    if (data.valid && !data.valid_sampler)
        data.valid_sampler = std::make_unique<SequentialSampler>(data.valid->size());
    if (const SampleLayout layout = data.train->layout();
        (options.model == "small_cnn" || options.model == "resnet18") && (layout.rank != 3 || layout.shape[0] != 3))
        throw Failure{fmt::format("--model {} takes images of three channels; samples of {} are {}: try --model mlp",
                                  options.model, options.data,
                                  fmt::join(std::span{layout.shape}.first(layout.rank), "x"))};
    return data;
}

}   // namespace drawpoint::cli
