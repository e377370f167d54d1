// What the stages of both JPEG decoders cost, each by itself or as the difference between two decodes.
#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>
#include <drawpoint/pipeline/image/resize.hpp>

#include "contenders/plain_decode.hpp"
#include "decode_photos.hpp"
#include "photos.hpp"
#include "program.hpp"
#include "pipeline/image/libjpeg.hpp"
#include "pipeline/image/own_jpeg/own_jpeg.hpp"
#include "pipeline/image/resample.hpp"
#include "pipeline/image/ycc_rows.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

/// What one stage of decoding costs.
struct Stage {
    std::string part, name;
    double us = 0;   ///< per image: the mean over images of the fastest round of each
};

enum Measured : std::size_t {
    whole,
    header,
    above,
    entropy,
    planes,
    own_header,
    own_skip,
    own_planes,
    tables,
    colour,
    vertical,
    horizontal,
    resize,
    measured
};

template <class Step>
double us(const Step& step) {
    const auto begin = std::chrono::steady_clock::now();
    step();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

void need(bool succeeded) {
    if (!succeeded)
        throw std::runtime_error{"decode_stages: a photograph cannot be decoded"};
}

class Stages {
public:
    Stages(ImageSize target, std::size_t images)
        : target_{target}, out_(std::size_t{3} * target.width * target.height + 16), least_(measured) {
        for (auto& stage : least_)
            stage.assign(images, std::numeric_limits<double>::max());
        need(create_reader(reader_));
        reader_.restricts_columns = true;
    }
    ~Stages() { destroy_reader(reader_); }
    Stages(const Stages&) = delete;
    Stages& operator=(const Stages&) = delete;

    void run(const Photo& photo, std::size_t image) {
        const auto take = [&](Measured stage, double time) {
            least_[stage][image] = std::min(least_[stage][image], time);
        };
        take(whole, us([&] { (void)plain_.whole(photo.file); }));
        take(header, us([&] { open(photo); }));
        const auto [y, bottom] = blocks(photo.crop.y, photo.crop.height, reader_.info.image_height);
        const auto [x, right] = blocks(photo.crop.x, photo.crop.width, reader_.info.image_width);
        take(above, us([&] { decode({y, y, x, right}); }));
        open(photo);
        take(entropy, us([&] { decode({bottom, bottom, x, right}); }));
        open(photo);
        take(planes, us([&] { decode({y, bottom, x, right}); }));

        YccPlanes ycc;
        take(own_header, us([&] { need(own_.open(photo.file)); }));
        const CropBox corner{photo.crop.x + photo.crop.width - 1, photo.crop.y + photo.crop.height - 1, 1, 1};
        take(own_skip, us([&] { need(own_.decode_planes(corner, ycc)); }));
        need(own_.open(photo.file));
        take(own_planes, us([&] { need(own_.decode_planes(photo.crop, ycc)); }));
        take(resize, us([&] {
                 resize_normalize(ycc, photo.crop, target_, photo.flip, ResizeFilter::antialias, {normalization, out()},
                                  buffers_);
             }));
        second_half(photo, ycc, take);
    }

    [[nodiscard]] double mean(Measured stage) const {
        double sum = 0;
        for (const double time : least_[stage])
            sum += time;
        return sum / static_cast<double>(least_[stage].size());
    }

private:
    static constexpr ChannelNormalization normalization = ChannelNormalization::imagenet();
    static constexpr std::uint32_t strip_rows = 32;

    // The blocks of 16 pixels that cover a range, with one more pixel on each side.
    static std::pair<std::uint32_t, std::uint32_t> blocks(std::uint32_t begin, std::uint32_t count, std::uint32_t all) {
        return {(begin - std::min(begin, 1u)) / 16, (std::min(all, begin + count + 1) + 15) / 16};
    }

    void open(const Photo& photo) { need(read_header(reader_, photo.file.data(), photo.file.size())); }

    void decode(JpegBlocks window) {
        const auto& info = reader_.info;
        std::size_t stride = (std::size_t{info.image_width} + 143) / 64 * 64;
        stride += stride % 1024 == 0 ? 64 : 0;
        const std::size_t rows = (window.row_end - window.row_begin) * std::size_t{16};
        samples_.resize(std::max(samples_.size(), 2 * rows * stride));
        std::uint8_t* const blue = samples_.data() + rows * stride;
        const JpegPlane to[3] = {{samples_.data(), stride}, {blue, stride}, {blue + rows * stride / 2, stride}};
        need(read_planes(reader_, window, to));
    }

    // Times each stage on rows that lie in the L1 cache, as they do in the whole decode.
    template <class Take>
    void second_half(const Photo& photo, const YccPlanes& ycc, const Take& take) {
        const PixelKernels& kernels = *buffers_.kernels;
        FilterTable &down = buffers_.vertical, &across = buffers_.horizontal;
        take(tables, us([&] {
                 down.fill(photo.crop.height, target_.height, ResizeFilter::antialias, false,
                           FilterTable::vertical_bits);
                 across.fill(photo.crop.width, target_.width, ResizeFilter::antialias, photo.flip,
                             FilterTable::horizontal_bits);
                 if (!across.wide)
                     kernels.pack(across, buffers_.packed);
             }));
        if (down.wide || across.wide)
            throw std::runtime_error{"decode_stages: a photograph is too large for its crop"};
        const YccRows rows{ycc, photo.crop, kernels};
        const std::size_t bytes = 3 * rows.plane_stride(), stride = bytes % 1024 == 0 ? bytes + 64 : bytes;
        const std::uint32_t most = std::max(strip_rows, down.taps);
        std::uint8_t* const strip = buffers_.strip.get(most * stride + row_padding);
        std::uint8_t* const row = buffers_.row.get(bytes + row_padding);
        std::int16_t* const chroma = buffers_.chroma.get(rows.scratch_words());
        take(colour, us([&] {
                 for (std::uint32_t y = 0; y < photo.crop.height; y += most)
                     rows.make(y, std::min(photo.crop.height, y + most), chroma, strip, stride);
             }));
        take(vertical, us([&] {
                 for (std::uint32_t y = 0; y < target_.height; ++y) {
                     const std::uint32_t first = (most - down.taps) * (y % 16) / 16;
                     const std::uint8_t* from = strip + first * stride;
                     const std::uint16_t *weight = down.narrow + std::size_t{y} * down.stride,
                                         *end = weight + down.taps;
                     while (*weight == 0)   // the resampling skips zero weights, too
                         ++weight, from += stride;
                     while (end[-1] == 0)
                         --end;
                     kernels.vertical(from, stride, weight, static_cast<std::uint32_t>(end - weight),
                                      static_cast<std::uint16_t>(128 + down.taps / 2), bytes, row);
                 }
             }));
        AffineNormalization affine{};
        affine.scale.fill(1);
        take(horizontal, us([&] {
                 for (std::uint32_t y = 0; y < target_.height; ++y)
                     kernels.horizontal(
                         row, rows.plane_stride(), across, buffers_.packed,
                         {out() + std::size_t{y} * target_.width, std::size_t{target_.width} * target_.height, affine});
                 kernels.finish();
             }));
    }

    float* out() {   // aligned as a batch is
        const auto address = reinterpret_cast<std::uintptr_t>(out_.data());
        return out_.data() + (64 - address % 64) % 64 / sizeof(float);
    }

    ImageSize target_;
    std::vector<float> out_;
    std::vector<std::vector<double>> least_;
    PlainDecode plain_;
    JpegReader reader_{};
    OwnJpegDecoder own_;
    ResizeBuffers buffers_;
    std::vector<std::uint8_t> samples_;
};

bool is_420(const Photo& photo) {
    OwnJpegDecoder decoder;
    YccPlanes planes;
    return decoder.open(photo.file) && decoder.decode_planes(photo.crop, planes) &&
           planes.sampling == ChromaSampling::s420;
}

/// Of the 4:2:0 photographs among these; the last row of a part is the whole of it. Wall time of one thread.
std::vector<Stage> decode_stages(const std::vector<Photo>& photos, int rounds) {
    std::vector<const Photo*> chosen;
    for (const Photo& photo : photos)
        if (is_420(photo))
            chosen.push_back(&photo);
    if (chosen.empty())
        throw std::runtime_error{"decode_stages: none of the photographs is a baseline 4:2:0 file"};
    Stages stages{decode_target, chosen.size()};
    for (int round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < chosen.size(); ++i)
            stages.run(*chosen[i], i);
    const auto of = [&stages](Measured stage) { return stages.mean(stage); };
    const double both = of(resize);
    return {
        {"whole", "libjpeg-turbo, whole image to RGB", of(whole)},
        {"library", "header", of(header)},
        {"library", "start, and entropy decoding above the crop", of(above)},
        {"library", "entropy decoding of the crop's rows", of(entropy) - of(above)},
        {"library", "inverse transform of the crop's blocks", of(planes) - of(entropy)},
        {"library", "our second half, below", both},
        {"library", "all", of(header) + of(planes) + both},
        {"own", "header", of(own_header)},
        {"own", "unstuffing, and skipping to the crop's last row", of(own_skip)},
        {"own", "storing and transforming the crop's blocks", of(own_planes) - of(own_skip)},
        {"own", "our second half, below", both},
        {"own", "all", of(own_header) + of(own_planes) + both},
        {"second half", "filter tables", of(tables)},
        {"second half", "interpolation of chroma, and RGB", of(colour)},
        {"second half", "rows: vertical pass", of(vertical)},
        {"second half", "columns: horizontal pass, normalise, store", of(horizontal)},
        {"second half", "all", both},
    };
}

int run(const std::string& data, std::size_t images, int rounds, bool json, const std::string& command) {
    std::optional<TemporaryPhotos> generated;
    const std::vector<Photo> photos =
        load_photos(data.empty() ? generated.emplace(64).folder() : std::filesystem::path{data}, images);
    const std::vector<Stage> stages = decode_stages(photos, rounds);
    const double whole = stages.front().us;
    if (json) {
        nlohmann::ordered_json document =
            json_document("drawpoint.decode_stages/1", {DRAWPOINT_VERSION, command}, this_machine());
        document["images"] = photos.size();
        document["rounds"] = rounds;
        for (const Stage& stage : stages)
            document["stages"].push_back(
                {{"part", stage.part}, {"stage", stage.name}, {"us", stage.us}, {"of_whole", stage.us / whole}});
        fmt::print("{}", json_text(document));
        return 0;
    }
    fmt::print("{} images; of each the least of {} rounds, one thread, wall time\n", photos.size(), rounds);
    fmt::print("{:11}  {:48} {:>9} {:>9}\n", "", "", "us/image", "of whole");
    for (const Stage& stage : stages)
        fmt::print("{:11}  {:48} {:9.1f} {:8.1f}%\n", stage.part, stage.name, stage.us, 100 * stage.us / whole);
    return 0;
}

}   // namespace

int main(int argc, char** argv) {
    CLI::App app{"what the stages of both JPEG decoders cost, on one thread", "drawpoint bench decode-stages"};
    std::string data;
    std::size_t images = 512;
    int rounds = 7;
    bool json = false;
    add_data_option(app, data);
    app.add_option("--images", images, "how many of them [512]")->check(CLI::Range(1, 100'000));
    app.add_option("--rounds", rounds, "by turns [7]")->check(CLI::Range(1, 1000));
    app.add_flag("--json", json, "JSON on stdout, not a table");
    return run_program(app, "decode-stages", argc, argv,
                       [&](const std::string& command) { return run(data, images, rounds, json, command); });
}
