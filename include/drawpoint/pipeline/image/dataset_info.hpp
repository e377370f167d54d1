#pragma once
#include <drawpoint/pipeline/image/photo_crops.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace drawpoint {

/// What is looked at: nothing but sizes in bytes; each file's header and end; all of it, by decoding.
enum class ImageCheck : std::uint8_t { none, ends, pixels };

/// Counts and sizes of the images in a data set. `ignored_files` is that of the ImageFolder, 0 for shards; classes
/// without images have no part in `smallest_class`.
struct DatasetInfo {
    std::size_t images = 0, classes = 0, ignored_files = 0;
    std::size_t smallest_class = 0, largest_class = 0;                    ///< images in the class
    std::uint64_t bytes = 0;                                              ///< total, of the files that could be read
    std::uint64_t smallest_file = 0, median_file = 0, largest_file = 0;   ///< bytes, of the files that passed
    ImageSize smallest, median, largest;   ///< of the files that passed; width and height each taken on its own
    std::vector<RefusedFile> failures;     ///< files that are unreadable, not images, damaged or unsupported
};

/// Looks at every file, on the calling thread: O(files) for `none`, O(bytes) for `ends`, and a decoder's time for
/// `pixels`. A file passes if nothing is wrong with what is looked at. `none`: every file passes, sizes in pixels are
/// 0x0.
DatasetInfo dataset_info(const ImageFolder& folder, ImageCheck);
/// The same for shards. `none` reads nothing: sizes in bytes are those of the index.
DatasetInfo dataset_info(const TarShards& shards, ImageCheck);

}   // namespace drawpoint
