#include <drawpoint/pipeline/image/dataset_info.hpp>

#include <drawpoint/pipeline/image/image_decoder.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>

namespace drawpoint {
namespace {

template <class T>
struct Spread {
    T least{}, median{}, most{};
};

template <class T>
Spread<T> spread(std::vector<T>& values) {
    if (values.empty())
        return {};
    std::sort(values.begin(), values.end());
    return {values.front(), values[(values.size() - 1) / 2], values.back()};
}

/// `read(index, file)` reads an image into *file, unless that is null, and returns its bytes.
template <class Images, class Read>
DatasetInfo info_of(const Images& images, const Read& read, ImageCheck check) {
    DatasetInfo info;
    info.images = images.size();
    info.classes = images.num_classes();

    std::map<std::size_t, std::size_t> in_class;   // labels of shards may lie far apart
    std::vector<std::uint64_t> bytes;
    std::vector<std::uint32_t> widths, heights;
    std::vector<std::byte> file;
    std::vector<std::uint8_t> pixels;
    ImageDecoder decoder;
    for (std::size_t index = 0; index < images.size(); ++index) {
        ++in_class[static_cast<std::size_t>(images.label(index))];
        try {
            if (check == ImageCheck::none) {
                bytes.push_back(read(index, nullptr));
                info.bytes += bytes.back();
                continue;
            }
            read(index, &file);
            info.bytes += file.size();
            decoder.open(file);
            const auto [width, height] = decoder.size();
            if (check == ImageCheck::pixels) {
                pixels.resize(std::size_t{width} * height * 3);
                decoder.decode_rgb({.width = width, .height = height}, pixels.data());
            }
        } catch (const std::filesystem::filesystem_error& error) {
            info.failures.push_back({images.path(index), error.code().message()});
            continue;
        } catch (const std::runtime_error& error) {   // ImageError, TarError
            info.failures.push_back({images.path(index), error.what()});
            continue;
        }
        bytes.push_back(file.size());
        widths.push_back(decoder.size().width);
        heights.push_back(decoder.size().height);
    }
    const auto [fewest, most] =
        std::ranges::minmax_element(in_class, {}, [](const auto& label_and_count) { return label_and_count.second; });
    info.smallest_class = fewest->second;
    info.largest_class = most->second;
    const auto files = spread(bytes);
    info.smallest_file = files.least;
    info.median_file = files.median;
    info.largest_file = files.most;
    const auto across = spread(widths), down = spread(heights);
    info.smallest = {across.least, down.least};
    info.median = {across.median, down.median};
    info.largest = {across.most, down.most};
    return info;
}

}   // namespace

DatasetInfo dataset_info(const ImageFolder& folder, ImageCheck check) {
    const auto read = [&](std::size_t index, std::vector<std::byte>* file) {
        if (file == nullptr)
            return std::uint64_t{std::filesystem::file_size(folder.path(index))};
        read_file(folder.path(index), *file);
        return std::uint64_t{file->size()};
    };
    DatasetInfo info = info_of(folder, read, check);
    info.ignored_files = folder.ignored_files();
    return info;
}

DatasetInfo dataset_info(const TarShards& shards, ImageCheck check) {
    const auto read = [&](std::size_t index, std::vector<std::byte>* file) {
        if (file)
            shards.read(index, *file);
        return shards.bytes(index);
    };
    return info_of(shards, read, check);
}

}   // namespace drawpoint
