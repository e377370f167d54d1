#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/machine.hpp"
#include "cli/command_line.hpp"
#include "cli/options.hpp"
#include "cli/report_output.hpp"
#include <drawpoint/instrumentation/host/detail/signals.hpp>
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

ImageSize size_in(std::string_view option, std::string_view text) {
    const auto is_side = [](const auto& side) { return side && *side > 0 && *side <= 65'500; };
    const auto sides = split(text, 'x');
    const auto width = number_in<std::uint32_t>(sides.front()), height = number_in<std::uint32_t>(sides.back());
    if (sides.size() != 2 || !is_side(width) || !is_side(height))
        throw UsageError{fmt::format("{} must be WIDTHxHEIGHT in pixels, got '{}'", option, text)};
    return {*width, *height};
}

int crops(const Invocation& invocation) {
    CommandLine line{invocation, "Cuts a labelled image folder out of photographs: the label is the photograph."};
    std::string from, out;
    PhotoCropOptions options;
    line.app().add_option("--from", from, "a folder of photographs")->type_name("FOLDER");
    line.app().add_option("--out", out, "the folder that gets train/ and valid/")->type_name("FOLDER");
    add_number(line.app(), "--per-image", options.per_image, 1, 1'000'000, "crops of each photograph to train on");
    add_read(line.app(), "--size", options.size, "500x375", size_in, "of a crop, in pixels")->type_name("WIDTHxHEIGHT");
    add_number(line.app(), "--quality", options.quality, 1, 100, "of the JPEG files, 1 to 100");
    add_number(line.app(), "--seed", options.seed, 0, INT64_MAX, "of where crops lie");
    add_number(line.app(), "--held-out", options.held_out, 0, 0.5,
               "share of the crops held out for validation, 0 to 0.5");
    if (!line.parse())
        return exit_ok;
    require("--from", from);
    require("--out", out);
    options.from = from;
    options.out = out;

    const PhotoCropSummary done = cut_photo_crops(options);
    for (const RefusedFile& file : done.skipped)
        complain(fmt::format("{}: left out: {}", file.path, file.reason));
    if (done.photographs == 0)
        throw Failure{done.skipped.empty() ? fmt::format("{}: no crops: no photograph (.jpg, .jpeg) found", from)
                                           : fmt::format("{}: no crops: every photograph was left out, {} in all", from,
                                                         done.skipped.size())};
    print_text(fmt::format(
        "{}: {} training crops in {}, {} held-out crops in {}, of {} photographs, {}\n", printable(out),
        format_count(static_cast<std::int64_t>(done.training_crops)), printable((options.out / "train").string()),
        format_count(static_cast<std::int64_t>(done.held_out_crops)), printable((options.out / "valid").string()),
        done.photographs, format_bytes(static_cast<double>(done.bytes))));
    return exit_ok;
}

int generate(const Invocation& invocation) {
    CommandLine line{invocation, "Writes generated photo-like pictures, for where there are no photographs."};
    std::string out;
    std::uint32_t count = 12;
    std::uint64_t seed = 7;
    line.app().add_option("--out", out, "the folder that gets the pictures")->type_name("FOLDER");
    add_number(line.app(), "--count", count, 1, 10'000, "how many");
    add_number(line.app(), "--seed", seed, 0, INT64_MAX, "of what they show");
    if (!line.parse())
        return exit_ok;
    require("--out", out);
    make_generated_photos(out, count, seed);
    print_text(fmt::format("{}: {} generated pictures\n", printable(out), count));
    return exit_ok;
}

std::uint64_t shard_bytes_in(std::string_view option, std::string_view text) {
    const std::uint64_t bytes = bytes_in(option, text);
    if (bytes < 1)
        throw UsageError{fmt::format("{} must be at least 1 byte, got {}", option, text)};
    return bytes;
}

int pack(const Invocation& invocation) {
    CommandLine line{invocation, "Packs an image folder into tar shards that WebDataset reads, too."};
    std::string from, out;
    std::stop_source stop;
    TarPackOptions options{.stop = stop.get_token()};
    std::uint64_t seed = 0;
    bool shuffle = false;
    line.app().add_option("--from", from, "the image folder")->type_name("FOLDER");
    line.app()
        .add_option("--out", out, "the folder that gets the shards; it must not exist, or be empty")
        ->type_name("FOLDER");
    add_read(line.app(), "--shard-size", options.shard_bytes, "256MiB", shard_bytes_in,
             "the most bytes of a shard, before compression")
        ->type_name("SIZE");
    add_read(line.app(), "--compress", options.compression, "none", one_of<TarCompression>({"none", "gz", "zst"}),
             "none, gz or zst; compressed shards are read forward only");
    line.app().add_flag("--shuffle,!--no-shuffle", shuffle, "pack the images in random order, not by class");
    add_number(line.app(), "--seed", seed, 0, INT64_MAX, "of that order");
    if (!line.parse())
        return exit_ok;
    require("--from", from);
    require("--out", out);
    options.out = out;
    const Signals signals{[&stop](int) { stop.request_stop(); }};

    const ImageFolder images{from};
    std::vector<std::uint64_t> order(images.size());
    if (shuffle)
        RandomSampler{images.size(), seed}.order(0, order);
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
    print_text(fmt::format("{}: {} images of {} classes in {} shards, {}\n", printable(out), count(done.samples),
                           count(images.num_classes()), count(done.shards),
                           format_bytes(static_cast<double>(done.bytes))));
    return exit_ok;
}

nlohmann::ordered_json json_of(const ImageSize& size) { return {{"width", size.width}, {"height", size.height}}; }

/// What `dataset info` found.
struct CheckedData {
    DatasetInfo found;
    std::optional<TarShards> shards;   ///< absent: an image folder
    ImageCheck check{};

    [[nodiscard]] bool images_read() const { return check != ImageCheck::none; }
    /// If none passed, the sizes of files and images are not known.
    [[nodiscard]] bool any_passed() const { return found.failures.size() < found.images; }
};

nlohmann::ordered_json to_json(const CheckedData& data, const Invocation& invocation) {
    const DatasetInfo& found = data.found;
    nlohmann::ordered_json document = json_document(
        "drawpoint.dataset/1", {.version = DRAWPOINT_VERSION, .command = invocation.line}, this_machine());
    document["images"] = found.images;
    document["classes"] = found.classes;
    document["checked"] = data.check == ImageCheck::pixels;
    if (data.shards) {
        document["shards"] = data.shards->shard_sizes().size();
        document["indexed_shards"] = data.shards->indexed_shards();
        document["random_access"] = data.shards->random_access();
    }
    document["ignored_files"] = found.ignored_files;
    document["smallest_class"] = found.smallest_class;
    document["largest_class"] = found.largest_class;
    document["total_bytes"] = found.bytes;
    const auto if_known = [](bool known, const nlohmann::ordered_json& value) {
        return known ? value : nlohmann::ordered_json{};
    };
    const bool files = data.any_passed(), images = files && data.images_read();
    document["smallest_file_bytes"] = if_known(files, found.smallest_file);
    document["median_file_bytes"] = if_known(files, found.median_file);
    document["largest_file_bytes"] = if_known(files, found.largest_file);
    document["smallest_size"] = if_known(images, json_of(found.smallest));
    document["median_size"] = if_known(images, json_of(found.median));
    document["largest_size"] = if_known(images, json_of(found.largest));
    document["failures"] = nlohmann::ordered_json::array();
    for (const RefusedFile& file : found.failures)
        document["failures"].push_back({{"path", file.path}, {"reason", file.reason}});
    return document;
}

std::string to_text(const CheckedData& data) {
    const auto count = [](std::size_t n) { return format_count(static_cast<std::int64_t>(n)); };
    const auto bytes = [](std::uint64_t n) { return format_bytes(static_cast<double>(n)); };
    const DatasetInfo& found = data.found;
    std::string text = fmt::format("images     {} in {} classes of {} to {}{}\n", count(found.images),
                                   count(found.classes), count(found.smallest_class), count(found.largest_class),
                                   found.bytes > 0 ? ", " + bytes(found.bytes) : "");
    text += fmt::format("files      {}{} others left out\n",
                        data.any_passed() ? fmt::format("{} to {}, median {}; ", bytes(found.smallest_file),
                                                        bytes(found.largest_file), bytes(found.median_file))
                                          : "",
                        count(found.ignored_files));
    if (data.shards)
        text += fmt::format("shards     {}, {} with an index; read {}\n", count(data.shards->shard_sizes().size()),
                            count(data.shards->indexed_shards()),
                            data.shards->random_access() ? "at random" : "forward only");
    if (data.images_read() && data.any_passed())
        text += fmt::format("pixels     {}x{} to {}x{}, median {}x{}\n", found.smallest.width, found.smallest.height,
                            found.largest.width, found.largest.height, found.median.width, found.median.height);
    const std::string what = data.check == ImageCheck::none   ? "the archives only"
                             : data.check == ImageCheck::ends ? "header and end of every file"
                                                              : "every image decoded";
    return text +
           fmt::format("checked    {}{}{}\n", what,
                       found.failures.empty() ? "" : ": " + count(found.failures.size()) + " files cannot be used",
                       data.check == ImageCheck::pixels ? "" : "; --check decodes every image");
}

int info(const Invocation& invocation) {
    CommandLine line{invocation, "Says what is in an image folder or in tar shards and checks it."};
    std::string place;
    bool check = false;
    line.app()
        .add_option("--data,DIR", place, "the image folder, shard, folder of shards or {0000..0146} pattern")
        ->type_name("FOLDER|FILE");
    line.app().add_flag("--check", check,
                        "decode every image, on one core; else a folder's are checked by header and end");
    OutputFlags flags{line.app(), false};
    if (!line.parse())
        return exit_ok;
    const OutputOptions output = flags.read();
    require("--data", place);
    CheckedData data;
    if (names_tar_shards(place))
        data.shards.emplace(place);
    data.check = check ? ImageCheck::pixels : data.shards ? ImageCheck::none : ImageCheck::ends;
    data.found = data.shards ? dataset_info(*data.shards, data.check) : dataset_info(ImageFolder{place}, data.check);
    const nlohmann::ordered_json document = to_json(data, invocation);
    for (const RefusedFile& file : data.found.failures)
        complain(fmt::format("{}: {}", file.path, file.reason));
    print_output(to_text(data), document, output);
    return data.found.failures.empty() ? exit_ok : exit_failed;
}

}   // namespace

int dataset(const Invocation& invocation) {
    std::signal(SIGXFSZ, SIG_IGN);   // a file at its size limit is an error to report, not the end of the process
    const std::vector<std::string> names{dataset_actions.begin(), dataset_actions.end()};
    constexpr std::array actions{crops, generate, info, pack};
    if (invocation.arguments.empty())
        throw UsageError{fmt::format("dataset needs one of {}", fmt::join(names, ", "))};
    const std::string& action = invocation.arguments.front();
    if (action == "--help" || action == "-h") {
        print(
            fmt::format("usage: drawpoint dataset {} [OPTIONS]\n\ndrawpoint dataset ACTION --help lists its options.\n",
                        fmt::join(names, "|")));
        return exit_ok;
    }
    const auto found = static_cast<std::size_t>(std::ranges::find(names, action) - names.begin());
    if (found == names.size())
        throw UsageError{fmt::format("dataset: unknown action {}{}", action, did_you_mean(action, names))};
    Invocation rest = invocation;
    rest.command += " " + action;
    rest.arguments.erase(rest.arguments.begin());
    return actions[found](rest);
}

}   // namespace drawpoint::cli
