// Measures what it costs to turn a JPEG file in memory into a sample in the batch, for several decoders, interleaved in
// one thread.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/report/machine.hpp>
#include <drawpoint/pipeline/image/crop.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "contenders/plain_decode.hpp"
#include "decode_stages.hpp"
#include "machine.hpp"
#include "photos.hpp"
#include "program.hpp"
#include "spread.hpp"

namespace {

using namespace drawpoint;
using bench::Photo;
using bench::PlainDecode;

constexpr std::size_t batch = 64;
constexpr ImageSize target{224, 224};
constexpr std::size_t values = std::size_t{3} * target.width * target.height;
constexpr ChannelNormalization normalization = ChannelNormalization::imagenet();

struct Way {
    std::string name, what;
    std::function<void(const Photo&, float*)> decode;
    bool makes_samples = true;
    std::vector<double> us{};                   // per image, one value per round
    double worst_levels = 0, mean_levels = 0;   // difference from the plain decoder
};

std::vector<Photo> load(const std::filesystem::path& folder, std::size_t most) {
    const ImageFolder data{folder};
    std::vector<Photo> photos;
    JpegDecoder decoder;
    const std::size_t count = std::min(most, data.size());
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t index = i * data.size() / count;   // spread over all classes
        Photo& photo = photos.emplace_back();
        read_file(data.path(index), photo.file);
        decoder.open(photo.file);
        CounterRng random{42, 0, index};
        photo.crop = random_resized_crop(decoder.size(), {}, random);
        photo.flip = random.uniform() < 0.5;
    }
    return photos;
}

// Adds the differences between two samples, in levels of 255: the largest, and the sum of all.
void compare(Way& way, const float* ours, const float* plain) {
    for (std::size_t i = 0; i < values; ++i) {
        const double level = 255.0 * normalization.standard_deviation[i / (values / 3)];
        const double difference = std::abs(static_cast<double>(ours[i]) - plain[i]) * level;
        way.worst_levels = std::max(way.worst_levels, difference);
        way.mean_levels += difference;
    }
}

void run(std::vector<Way>& ways, const std::vector<Photo>& photos, int rounds) {
    // As in a loader: aligned, larger than the cache, and touched before.
    const std::unique_ptr<float, decltype(&std::free)> memory{
        static_cast<float*>(std::aligned_alloc(4096, batch * values * sizeof(float))), &std::free};
    float* const slots = memory.get();
    std::fill_n(slots, batch * values, 0.0F);
    std::vector<float> plain(values);
    for (const Photo& photo : photos) {
        for (Way& way : ways) {
            way.decode(photo, slots);
            if (way.makes_samples && &way != ways.data())
                compare(way, slots, plain.data());
            else if (way.makes_samples)
                plain.assign(slots, slots + values);
        }
    }
    for (Way& way : ways)
        way.mean_levels /= static_cast<double>(photos.size() * values);
    for (int round = 0; round < rounds; ++round) {
        std::vector<double> seconds(ways.size());
        for (std::size_t begin = 0; begin < photos.size(); begin += batch)
            for (std::size_t w = 0; w < ways.size(); ++w) {
                const double before = bench::process_cpu_seconds();
                for (std::size_t i = begin; i < std::min(begin + batch, photos.size()); ++i)
                    ways[w].decode(photos[i], slots + (i - begin) * values);
                seconds[w] += bench::process_cpu_seconds() - before;
            }
        for (std::size_t w = 0; w < ways.size(); ++w)
            ways[w].us.push_back(1e6 * seconds[w] / static_cast<double>(photos.size()));
    }
}

nlohmann::ordered_json ratios(const Way& way, const Way& to) {
    std::vector<double> ratio;
    for (std::size_t round = 0; round < way.us.size(); ++round)
        ratio.push_back(to.us[round] / way.us[round]);
    const bench::Spread spread = bench::spread_of(ratio);
    return {{"median", spread.median}, {"low", spread.low}, {"high", spread.high}};
}

std::string text(const nlohmann::ordered_json& ratio) {
    return fmt::format("{:5.2f} ({:.2f}-{:.2f})", ratio["median"].get<double>(), ratio["low"].get<double>(),
                       ratio["high"].get<double>());
}

void print_stages(const std::vector<Photo>& photos, int rounds, bool json) {
    const std::vector<bench::Stage> stages = bench::decode_stages(photos, target, rounds);
    const double whole = stages.front().us;
    if (json) {
        nlohmann::ordered_json rows = nlohmann::ordered_json::array();
        for (const bench::Stage& stage : stages)
            rows.push_back(
                {{"part", stage.part}, {"stage", stage.name}, {"us", stage.us}, {"of_whole", stage.us / whole}});
        fmt::print("{}\n", nlohmann::ordered_json{{"suite", "decode_stages"},
                                                  {"cpu", this_machine().cpu},
                                                  {"images", photos.size()},
                                                  {"rounds", rounds},
                                                  {"stages", rows}}
                               .dump(2));
        return;
    }
    fmt::print("{} images; of each the least of {} rounds, one thread, wall time\n", photos.size(), rounds);
    fmt::print("{:11}  {:48} {:>9} {:>9}\n", "", "", "us/image", "of whole");
    for (const bench::Stage& stage : stages)
        fmt::print("{:11}  {:48} {:9.1f} {:8.1f}%\n", stage.part, stage.name, stage.us, 100 * stage.us / whole);
}

}   // namespace

int main(int argc, char** argv) try {
    CLI::App app{
        "JPEG files in memory to RandomResizedCrop(224), flipped, normalised, planar float32: CPU time of one thread"};
    std::string data;
    std::size_t images = 512;
    int rounds = 7;
    std::string format;
    bool stages = false;
    app.add_flag("--stages", stages, "what the stages of both decoders cost, in place of the comparison");
    bench::add_data_option(app, data);
    app.add_option("--images", images, "how many of them")->check(CLI::Range(1, 100'000));
    app.add_option("--rounds", rounds, "by turns")->check(CLI::Range(1, 1000));
    app.add_option("--benchmark_format", format)
        ->envname("BENCHMARK_FORMAT")
        ->check(CLI::IsMember({"json", "console"}));
    CLI11_PARSE(app, argc, argv);

    std::optional<bench::TemporaryPhotos> generated;
    if (data.empty())
        data = generated.emplace(64).folder();
    const std::vector<Photo> photos = load(data, images);

    if (stages) {
        print_stages(photos, rounds, format == "json");
        return 0;
    }
    PlainDecode plain, whole, window;
    ResizeScratch scratch;
    JpegDecoder library{JpegBackend::library}, own{JpegBackend::own};
    const auto with = [](JpegDecoder& decoder) {
        return [&decoder](const Photo& photo, float* out) {
            decoder.open(photo.file);
            decoder.decode(photo.crop, target, photo.flip, ResizeFilter::antialias, normalization, out);
        };
    };
    std::vector<Way> ways{
        {"plain", "whole image by libjpeg-turbo, Pillow's resize in plain C++",
         [&](const Photo& photo, float* out) {
             plain.resize(plain.whole(photo.file), photo.crop, target, photo.flip, normalization, out);
         }},
        {"whole", "whole image by libjpeg-turbo, nothing else",
         [&](const Photo& photo, float*) { (void)whole.whole(photo.file); }, false},
        {"window", "the crop's window by libjpeg-turbo, vector resize",
         [&](const Photo& photo, float* out) {
             const ImageView view = window.window(photo.file, photo.crop);
             resize_normalize(view, {0, 0, view.size.width, view.size.height}, target, photo.flip,
                              ResizeFilter::antialias, normalization, scratch, out);
         }},
        {"library", "planes by libjpeg-turbo, our colour and resize (--jpeg-decoder library)", with(library)},
        {"own", "planes by our decoder, our colour and resize (--jpeg-decoder own)", with(own)},
    };
    run(ways, photos, rounds);

    bool right = true;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Way& way : ways) {
        right = right && way.worst_levels < 1.01 && way.mean_levels <= 0.15;
        rows.push_back({{"way", way.name},
                        {"what", way.what},
                        {"cpu_us_per_image", bench::spread_of(way.us).median},
                        {"times_plain", ratios(way, ways[0])},
                        {"times_whole", ratios(way, ways[1])},
                        {"largest_difference_levels", way.worst_levels},
                        {"mean_difference_levels", way.mean_levels}});
    }
    if (format == "json") {
        fmt::print("{}\n", nlohmann::ordered_json{{"suite", "decode"},
                                                  {"cpu", this_machine().cpu},
                                                  {"images", photos.size()},
                                                  {"rounds", rounds},
                                                  {"output_checked", right},
                                                  {"ways", rows}}
                               .dump(2));
    } else {
        fmt::print("{} images, {} rounds by turns, one thread, CPU time; ratios: median (lowest-highest round)\n",
                   photos.size(), rounds);
        fmt::print("{:8} {:>9}  {:20} {:20} {:>9} {:>9}\n", "", "us/image", "x plain", "x whole", "max level", "mean");
        for (const auto& row : rows)
            fmt::print("{:8} {:9.1f}  {:20} {:20} {:9.2f} {:9.4f}\n", row["way"].get<std::string>(),
                       row["cpu_us_per_image"].get<double>(), text(row["times_plain"]), text(row["times_whole"]),
                       row["largest_difference_levels"].get<double>(), row["mean_difference_levels"].get<double>());
    }
    if (!right)
        fmt::print(stderr, "bench_decode: pixels differ by more than they may (1 level, 0.15 in the mean)\n");
    return right ? 0 : 1;
} catch (const std::exception& error) {
    fmt::print(stderr, "bench_decode: {}\n", error.what());
    return 1;
}
