#include <drawpoint/pipeline/image/photo_crops.hpp>

#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/rng.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>
#include "pipeline/image/jpeg_encoder.hpp"
#include "pipeline/image/photo_split.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>
#include <stdexcept>

namespace drawpoint {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_option(const std::string& what, const std::string& got) {
    throw std::invalid_argument(what + ", got " + got);
}

void check(const PhotoCropOptions& options) {
    if (options.per_image == 0)
        refuse_option("per_image must be at least 1", "0");
    if (options.size.width == 0 || options.size.height == 0 || options.size.width > 65500 ||
        options.size.height > 65500)
        refuse_option("size must be 1x1 to 65500x65500",
                      std::to_string(options.size.width) + 'x' + std::to_string(options.size.height));
    if (options.quality < 1 || options.quality > 100)
        refuse_option("quality must be 1 to 100", std::to_string(options.quality));
    if (!(options.held_out >= 0 && options.held_out <= 0.5))
        refuse_option("held_out must be 0 to 0.5", std::to_string(options.held_out));
    if (!fs::is_directory(options.from))
        refuse_option("from must be a folder", options.from.string());
    // A second run would take the first one's crops for photographs.
    const fs::path from = fs::weakly_canonical(options.from), out = fs::weakly_canonical(options.out);
    if (std::mismatch(from.begin(), from.end(), out.begin(), out.end()).first == from.end())
        refuse_option("out must not lie in from", options.out.string());
}

std::vector<fs::path> find_photographs(const fs::path& folder) {
    std::vector<fs::path> paths;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.path().filename().native().front() == '.')
            continue;
        std::string extension = entry.path().extension().string();
        for (char& letter : extension)
            if (letter >= 'A' && letter <= 'Z')
                letter = static_cast<char>(letter - 'A' + 'a');
        if ((extension == ".jpg" || extension == ".jpeg") && !entry.is_directory())
            paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
    return paths;
}

std::string crop_name(std::uint64_t number) {
    char name[32];
    std::snprintf(name, sizeof name, "%04llu.jpg", static_cast<unsigned long long>(number));
    return name;
}

// An earlier run may have written more crops.
void remove_crops_from(std::uint64_t first, const fs::path& folder) {
    std::vector<fs::path> stale;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        std::uint64_t number = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc{} && number >= first &&
            name == crop_name(number))
            stale.push_back(entry.path());
    }
    for (const fs::path& path : stale)
        fs::remove(path);
}

// One photograph's pixels and the place its crops are written from.
class Cutter {
public:
    explicit Cutter(const PhotoCropOptions& options)
        : options_{options},
          planar_(std::size_t{3} * options.size.width * options.size.height),
          crop_(planar_.size()) {}

    /// Writes `count` crops of `region` to `folder`; returns their bytes.
    std::uint64_t cut(const ImageView& photograph, CropBox region, std::uint32_t count, const fs::path& folder,
                      std::uint32_t stream, std::uint64_t photograph_number) {
        fs::create_directories(folder);
        std::uint64_t bytes = 0;
        for (std::uint32_t number = 0; number < count; ++number) {
            CounterRng random{options_.seed, stream, (photograph_number << 32) | number};
            const std::vector<std::byte> file = encode(photograph, random_window(region, options_.size, random));
            write_whole_file(folder / crop_name(number), file);
            bytes += file.size();
        }
        remove_crops_from(count, folder);
        return bytes;
    }

private:
    std::vector<std::byte> encode(const ImageView& photograph, CropBox window) {
        resize_normalize(photograph, window, options_.size, false, ResizeFilter::antialias,
                         PlanarOutput{planar_.data()}, scratch_);
        const std::size_t plane = planar_.size() / 3;
        for (std::size_t i = 0; i < plane; ++i)
            for (std::size_t c = 0; c < 3; ++c)
                crop_[3 * i + c] = planar_[c * plane + i];
        return encode_jpeg({crop_.data(), options_.size, std::size_t{3} * options_.size.width}, options_.quality);
    }

    const PhotoCropOptions& options_;
    ResizeScratch scratch_;
    std::vector<std::uint8_t> planar_;
    std::vector<std::uint8_t> crop_;
};

std::string unused_name(const fs::path& photograph, std::set<std::string>& used) {
    const std::string stem = photograph.stem().string();
    std::string name = stem;
    for (int copy = 2; !used.insert(name).second; ++copy)
        name = stem + '-' + std::to_string(copy);
    return name;
}

// A folder of another run's crops would be a class of this one's data set.
void check_no_other_classes(const fs::path& part, const std::set<std::string>& names) {
    if (!fs::is_directory(part))
        return;
    for (const fs::directory_entry& entry : fs::directory_iterator(part)) {
        const std::string name = entry.path().filename().string();
        if (entry.is_directory() && name.front() != '.' && !names.contains(name))
            refuse_option("out must hold no class folder of other photographs", entry.path().string());
    }
}

// A photograph that an earlier run used may be left out now.
void remove_left_out(const fs::path& part, const std::set<std::string>& all, const std::set<std::string>& written) {
    for (const std::string& name : all)
        if (const fs::path folder = part / name; !written.contains(name) && fs::is_directory(folder)) {
            remove_crops_from(0, folder);
            if (fs::is_empty(folder))
                fs::remove(folder);
        }
}

}   // namespace

PhotoCropSummary cut_photo_crops(const PhotoCropOptions& options) {
    check(options);
    const auto held_out =
        static_cast<std::uint32_t>(std::lround(options.per_image * options.held_out / (1 - options.held_out)));
    PhotoCropSummary summary;
    const std::vector<fs::path> paths = find_photographs(options.from);
    std::set<std::string> all_names, names;
    for (const fs::path& path : paths)
        (void)unused_name(path, all_names);
    check_no_other_classes(options.out / "train", all_names);
    check_no_other_classes(options.out / "valid", held_out > 0 ? all_names : std::set<std::string>{});
    std::vector<std::byte> file;
    std::vector<std::uint8_t> pixels;
    JpegDecoder decoder;
    Cutter cutter{options};
    std::uint64_t number = 0;
    for (const fs::path& path : paths) {
        ++number;   // also for those skipped: a photograph's crops do not depend on whether its neighbours are sound
        try {
            read_file(path.c_str(), file);
            decoder.open(file);
            const ImageSize size = decoder.size();
            CounterRng random{options.seed, 2, number};
            const PhotoSplit split = split_photograph(size, options.size, options.held_out, random.uniform() < 0.5);
            pixels.resize(std::size_t{3} * size.width * size.height);
            decoder.decode_rgb({0, 0, size.width, size.height}, pixels.data());
            const ImageView photograph{pixels.data(), size, std::size_t{3} * size.width};
            const std::string name = unused_name(path, names);
            summary.bytes +=
                cutter.cut(photograph, split.training, options.per_image, options.out / "train" / name, 0, number);
            if (held_out > 0)
                summary.bytes +=
                    cutter.cut(photograph, split.held_out, held_out, options.out / "valid" / name, 1, number);
        } catch (const ImageError& error) {
            summary.skipped.push_back({path.string(), error.what()});
            continue;
        } catch (const fs::filesystem_error& error) {
            if (error.path1() != path)
                throw;   // what cannot be written ends the whole work
            summary.skipped.push_back({path.string(), error.code().message()});
            continue;
        }
        ++summary.photographs;
        summary.training_crops += options.per_image;
        summary.held_out_crops += held_out;
    }
    remove_left_out(options.out / "train", all_names, names);
    remove_left_out(options.out / "valid", all_names, names);
    return summary;
}

}   // namespace drawpoint
