#pragma once
#include <drawpoint/pipeline/image/photo_crops.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace drawpoint {

/// Counts and sizes of the images in a data set. A file passes if its header and its end are valid. `ignored_files` is
/// that of the ImageFolder, 0 for shards; classes without images have no part in `smallest_class`.
struct DatasetInfo {
    std::size_t images = 0, classes = 0, ignored_files = 0;
    std::size_t smallest_class = 0, largest_class = 0;                    ///< images in the class
    std::uint64_t bytes = 0;                                              ///< total, of the files that could be read
    std::uint64_t smallest_file = 0, median_file = 0, largest_file = 0;   ///< bytes, of the files that passed
    ImageSize smallest, median, largest;   ///< of the files that passed; width and height each taken on its own
    std::vector<RefusedFile> failures;     ///< files that are unreadable, not images, truncated or unsupported
};

/// Reads every file of `folder` and checks its header and its end; pixels are not decoded. O(bytes).
DatasetInfo dataset_info(const ImageFolder& folder);

/// The same for shards. Without `read_all` no image is read: sizes in bytes are those of the index, sizes in pixels
/// 0x0, and every image counts as passed. With `read_all` every image is read and checked.
DatasetInfo dataset_info(const TarShards& shards, bool read_all);

}   // namespace drawpoint
