#pragma once
#include <drawpoint/pipeline/image/photo_crops.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace drawpoint {

/// What is in a data set.
struct DatasetInfo {
    std::size_t images = 0, classes = 0, ignored_files = 0;
    std::size_t smallest_class = 0, largest_class = 0;                    ///< images
    std::uint64_t bytes = 0;                                              ///< of the files that could be read
    std::uint64_t smallest_file = 0, median_file = 0, largest_file = 0;   ///< bytes, of the files that passed
    ImageSize smallest, median, largest;   ///< each side on its own, of the files that passed
    std::vector<RefusedFile> failures;     ///< unreadable, not an image, truncated, unsupported
};

/// Reads every file of `folder` and checks its header and its end; pixels are not decoded. O(bytes).
DatasetInfo dataset_info(const ImageFolder& folder);

/// The same of shards; only if `read_all`, every image is read and checked: without it only the index is looked at,
/// pixels are 0x0 and every image counts as one that passed.
DatasetInfo dataset_info(const TarShards& shards, bool read_all);

}   // namespace drawpoint
