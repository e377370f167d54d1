#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace drawpoint {

/// The files of a CIFAR data set in its binary version: records of label bytes and 3 × 32 × 32 values, all R, all G,
/// all B.
struct CifarFiles {
    std::vector<std::filesystem::path> paths;    ///< in the data set's order
    std::uint64_t label_at = 0, pixels_at = 0;   ///< offsets in a record of pixels_at + 3072 bytes
    std::int64_t classes = 0;                    ///< labels are 0 … classes - 1
};

/// Finds data_batch_1.bin … data_batch_5.bin, or test_batch.bin, in `folder` or folder/cifar-10-batches-bin. Throws
/// std::invalid_argument naming the folder and the missing file.
[[nodiscard]] CifarFiles find_cifar10(const std::filesystem::path& folder, bool train);

/// Finds train.bin or test.bin in `folder` or folder/cifar-100-binary, with the 20 coarse labels or the 100 fine ones.
/// Throws as find_cifar10().
[[nodiscard]] CifarFiles find_cifar100(const std::filesystem::path& folder, bool train, bool coarse);

}   // namespace drawpoint
