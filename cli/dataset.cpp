#include <charconv>
#include <csignal>
#include <optional>
#include <stop_token>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/machine.hpp"
#include "cli/command_line.hpp"
#include "cli/options.hpp"
#include "cli/report_output.hpp"
#include "cli/signals.hpp"
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>
#include <drawpoint/pipeline/image/dataset_info.hpp>
#include <drawpoint/pipeline/image/photo_crops.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/storage/tar_pack.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>

namespace drawpoint::cli {
namespace {

void require(std::string_view option, const std::string& value) {
    if (value.empty())
        throw UsageError{fmt::format("{} is missing", option)};
}

ImageSize size_of(const std::string& text) {
    ImageSize size;
    const char* const end = text.data() + text.size();
    const auto width = std::from_chars(text.data(), end, size.width);
    const bool has_both = width.ec == std::errc{} && width.ptr != end && *width.ptr == 'x';
    const auto height = has_both ? std::from_chars(width.ptr + 1, end, size.height) : width;
    if (!has_both || height.ec != std::errc{} || height.ptr != end || size.width == 0 || size.height == 0 ||
        size.width > 65'500 || size.height > 65'500)
        throw UsageError{fmt::format("--size must be WIDTHxHEIGHT in pixels, got '{}'", text)};
    return size;
}

int crops(const Invocation& invocation) {
    CommandLine line{invocation, "Cuts a labelled image folder out of photographs: the label is the photograph."};
    std::string from, out, size = "500x375";
    PhotoCropOptions options;
    std::int64_t per_image = options.per_image, seed = static_cast<std::int64_t>(options.seed);
    line.app().add_option("--from", from, "a folder of photographs");
    line.app().add_option("--out", out, "the folder that gets train/ and valid/");
    line.app().add_option("--per-image", per_image, "crops of each photograph");
    line.app().add_option("--size", size, "of a crop, in pixels");
    line.app().add_option("--quality", options.quality, "of the JPEG files, 1 to 100");
    line.app().add_option("--seed", seed, "of where crops lie");
    line.app().add_option("--held-out", options.held_out, "share of the crops held out for validation, 0 to 0.5");
    if (!line.parse())
        return exit_ok;
    require("--from", from);
    require("--out", out);
    if (per_image < 1 || per_image > 1'000'000)
        throw UsageError{fmt::format("--per-image must be between 1 and 1000000, got {}", per_image)};
    if (options.quality < 1 || options.quality > 100)
        throw UsageError{fmt::format("--quality must be between 1 and 100, got {}", options.quality)};
    if (!(options.held_out >= 0 && options.held_out <= 0.5))
        throw UsageError{fmt::format("--held-out must be between 0 and 0.5, got {}", options.held_out)};
    if (seed < 0)
        throw UsageError{fmt::format("--seed must be at least 0, got {}", seed)};
    options.from = from;
    options.out = out;
    options.per_image = static_cast<std::uint32_t>(per_image);
    options.size = size_of(size);
    options.seed = static_cast<std::uint64_t>(seed);

    const PhotoCropSummary done = cut_photo_crops(options);
    for (const RefusedFile& file : done.skipped)
        complain(fmt::format("{}: left out: {}", file.path, file.reason));
    if (done.photographs == 0)
        throw Failure{done.skipped.empty() ? fmt::format("{}: no crops: no photograph (.jpg, .jpeg) found", from)
                                           : fmt::format("{}: no crops: every photograph was left out, {} in all", from,
                                                         done.skipped.size())};
    print(fmt::format(
        "{}: {} training crops in {}, {} held-out crops in {}, of {} photographs, {}\n", printable(out),
        format_count(static_cast<std::int64_t>(done.training_crops)), printable((options.out / "train").string()),
        format_count(static_cast<std::int64_t>(done.held_out_crops)), printable((options.out / "valid").string()),
        done.photographs, format_bytes(static_cast<double>(done.bytes))));
    return exit_ok;
}

int generate(const Invocation& invocation) {
    CommandLine line{invocation, "Writes generated photo-like pictures, for where there are no photographs."};
    std::string out;
    std::int64_t count = 12, seed = 7;
    line.app().add_option("--out", out, "the folder that gets the pictures");
    line.app().add_option("--count", count, "how many");
    line.app().add_option("--seed", seed, "of what they show");
    if (!line.parse())
        return exit_ok;
    require("--out", out);
    if (count < 1 || count > 10'000)
        throw UsageError{fmt::format("--count must be between 1 and 10000, got {}", count)};
    if (seed < 0)
        throw UsageError{fmt::format("--seed must be at least 0, got {}", seed)};
    make_generated_photos(out, static_cast<std::uint32_t>(count), static_cast<std::uint64_t>(seed));
    print(fmt::format("{}: {} generated pictures\n", printable(out), count));
    return exit_ok;
}

nlohmann::ordered_json json_of(const ImageSize& size) { return {{"width", size.width}, {"height", size.height}}; }

std::uint64_t shard_bytes_of(const std::string& text) {
    const std::uint64_t bytes = bytes_in("shard-size", text);
    if (bytes < 1)
        throw UsageError{"--shard-size must be at least 1 byte, got " + text};
    return bytes;
}

TarCompression compression_of(const std::string& text) {
    if (text == "none")
        return TarCompression::none;
    if (text == "gz")
        return TarCompression::gzip;
    if (text == "zst")
        return TarCompression::zstd;
    throw UsageError{fmt::format("--compress must be one of none, gz, zst, got '{}'", text)};
}

int pack(const Invocation& invocation) {
    CommandLine line{invocation, "Packs an image folder into tar shards that WebDataset reads, too."};
    std::string from, out, shard_size = "256MiB", compress = "none";
    std::int64_t seed = 0;
    bool shuffle = false;
    line.app().add_option("--from", from, "the image folder");
    line.app().add_option("--out", out, "the folder that gets the shards; it must not exist, or be empty");
    line.app().add_option("--shard-size", shard_size, "the most bytes of a shard, before compression");
    line.app().add_option("--compress", compress, "none, gz or zst; compressed shards are read forward only");
    line.app().add_flag("--shuffle,!--no-shuffle", shuffle, "pack the images in random order, not by class");
    line.app().add_option("--seed", seed, "of that order");
    if (!line.parse())
        return exit_ok;
    require("--from", from);
    require("--out", out);
    if (seed < 0)
        throw UsageError{fmt::format("--seed must be at least 0, got {}", seed)};
    std::stop_source stop;
    const TarPackOptions options{out, shard_bytes_of(shard_size), compression_of(compress), stop.get_token()};
    const Signals signals{[&stop](int) { stop.request_stop(); }};

    const ImageFolder images{from};
    std::vector<std::uint64_t> order(images.size());
    if (shuffle)
        RandomSampler{images.size(), static_cast<std::uint64_t>(seed)}.order(0, order);
    else
        SequentialSampler{images.size()}.order(0, order);
    TarPackSummary done;
    try {
        done = pack_image_folder(images, order, options);
    } catch (const std::system_error& error) {
        if (error.code() != std::errc::operation_canceled)
            throw;
        complain(fmt::format("{}: interrupted, and not written", out));
        return exit_interrupted;
    }
    if (options.compression != TarCompression::none && !shuffle && images.num_classes() > 1)
        complain(
            "the shards are in the order of the classes, and compressed ones are shuffled only a little when read: "
            "consider --shuffle");
    const auto count = [](std::size_t n) { return format_count(static_cast<std::int64_t>(n)); };
    print(fmt::format("{}: {} images of {} classes in {} shards, {}\n", printable(out), count(done.samples),
                      count(images.num_classes()), count(done.shards), format_bytes(static_cast<double>(done.bytes))));
    return exit_ok;
}

int info(const Invocation& invocation) {
    CommandLine line{invocation, "Says what is in an image folder or in tar shards and checks it."};
    std::string data;
    bool check = false;
    line.app().add_option("--data,DIR", data, "the image folder, shard, folder of shards or {0000..0146} pattern");
    line.app().add_flag("--check", check, "check every image of shards, too; a folder's are checked always");
    const OutputFlags flags{line.app(), false};
    if (!line.parse())
        return exit_ok;
    const OutputOptions output = flags.read();
    require("--data", data);
    const std::optional<TarShards> shards = names_tar_shards(data) ? std::optional<TarShards>{data} : std::nullopt;
    const bool checked = check || !shards;
    const DatasetInfo found = shards ? dataset_info(*shards, check) : dataset_info(ImageFolder{data});
    const bool any_passed = found.failures.size() < found.images;   // else nobody knows how large images are
    const std::size_t shard_count = shards ? shards->shard_sizes().size() : 0;

    nlohmann::ordered_json document = json_document(
        "drawpoint.dataset/1", {.version = DRAWPOINT_VERSION, .command = invocation.line}, this_machine());
    document["images"] = found.images;
    document["classes"] = found.classes;
    document["checked"] = checked;
    if (shards) {
        document["shards"] = shard_count;
        document["indexed_shards"] = shards->indexed_shards();
        document["random_access"] = shards->random_access();
    }
    document["ignored_files"] = found.ignored_files;
    document["smallest_class"] = found.smallest_class;
    document["largest_class"] = found.largest_class;
    document["total_bytes"] = found.bytes;
    const auto known = [](bool is_known, const nlohmann::ordered_json& value) {
        return is_known ? value : nlohmann::ordered_json{};
    };
    document["smallest_file_bytes"] = known(any_passed, found.smallest_file);
    document["median_file_bytes"] = known(any_passed, found.median_file);
    document["largest_file_bytes"] = known(any_passed, found.largest_file);
    document["smallest_size"] = known(checked && any_passed, json_of(found.smallest));
    document["median_size"] = known(checked && any_passed, json_of(found.median));
    document["largest_size"] = known(checked && any_passed, json_of(found.largest));
    document["failures"] = nlohmann::ordered_json::array();
    for (const RefusedFile& file : found.failures) {
        document["failures"].push_back({{"path", file.path}, {"reason", file.reason}});
        complain(fmt::format("{}: {}", file.path, file.reason));
    }
    if (output.form == OutputOptions::Form::json) {
        print(json_text(document));
    } else {
        const auto count = [](std::size_t n) { return format_count(static_cast<std::int64_t>(n)); };
        const auto bytes = [](std::uint64_t n) { return format_bytes(static_cast<double>(n)); };
        print(fmt::format("images     {} in {} classes of {} to {}{}\n", count(found.images), count(found.classes),
                          count(found.smallest_class), count(found.largest_class),
                          found.bytes > 0 ? ", " + bytes(found.bytes) : ""));
        print(fmt::format("files      {}{} others left out\n",
                          any_passed ? fmt::format("{} to {}, median {}; ", bytes(found.smallest_file),
                                                   bytes(found.largest_file), bytes(found.median_file))
                                     : "",
                          count(found.ignored_files)));
        if (shards)
            print(fmt::format("shards     {}, {} with an index; read {}\n", count(shard_count),
                              count(shards->indexed_shards()), shards->random_access() ? "at random" : "forward only"));
        if (checked && any_passed)
            print(fmt::format("pixels     {}x{} to {}x{}, median {}x{}\n", found.smallest.width, found.smallest.height,
                              found.largest.width, found.largest.height, found.median.width, found.median.height));
        print(fmt::format("checked    {}\n", !checked ? "the archives only; --check reads every image"
                                             : found.failures.empty()
                                                 ? "every file is a whole image"
                                                 : count(found.failures.size()) + " files cannot be used"));
    }
    for (const std::string& file : output.json_files)
        write_file(file, json_text(document));
    return found.failures.empty() ? exit_ok : exit_failed;
}

}   // namespace

int dataset(const Invocation& invocation) {
    std::signal(SIGXFSZ, SIG_IGN);   // a file that may not grow is an error, not an end
    const std::vector<std::string> actions{"crops", "generate", "info", "pack"};
    if (invocation.arguments.empty())
        throw UsageError{"dataset needs one of crops, generate, info, pack"};
    const std::string& action = invocation.arguments.front();
    if (action == "--help" || action == "-h") {
        print(
            "usage: drawpoint dataset crops|generate|info|pack [OPTIONS]\n\ndrawpoint dataset ACTION --help lists its "
            "options.\n");
        return exit_ok;
    }
    Invocation rest = invocation;
    rest.command += " " + action;
    rest.arguments.erase(rest.arguments.begin());
    if (action == "crops")
        return crops(rest);
    if (action == "generate")
        return generate(rest);
    if (action == "info")
        return info(rest);
    if (action == "pack")
        return pack(rest);
    throw UsageError{fmt::format("dataset: unknown action {}{}", action, did_you_mean(action, actions))};
}

}   // namespace drawpoint::cli
