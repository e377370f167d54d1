#include "drawpoint/pipeline/image/dataset_info.hpp"

#include "drawpoint/pipeline/image/jpeg.hpp"
#include "drawpoint/pipeline/storage/file_reader.hpp"

#include <algorithm>

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

}   // namespace

DatasetInfo dataset_info(const ImageFolder& folder) {
    DatasetInfo info;
    info.images = folder.size();
    info.classes = folder.num_classes();
    info.ignored_files = folder.ignored_files();

    std::vector<std::size_t> in_class(info.classes, 0);
    std::vector<std::uint64_t> bytes;
    std::vector<std::uint32_t> widths, heights;
    std::vector<std::byte> file;
    JpegDecoder decoder;
    for (std::size_t index = 0; index < folder.size(); ++index) {
        ++in_class[folder.label(index)];
        try {
            read_file(folder.path(index), file);
            info.bytes += file.size();
            decoder.open(file);
        } catch (const ImageError& error) {
            info.failures.push_back({folder.path(index), error.what()});
            continue;
        } catch (const std::filesystem::filesystem_error& error) {
            info.failures.push_back({folder.path(index), error.code().message()});
            continue;
        }
        bytes.push_back(file.size());
        widths.push_back(decoder.size().width);
        heights.push_back(decoder.size().height);
    }
    const auto [fewest, most] = std::minmax_element(in_class.begin(), in_class.end());
    info.smallest_class = *fewest;
    info.largest_class = *most;
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

}   // namespace drawpoint
