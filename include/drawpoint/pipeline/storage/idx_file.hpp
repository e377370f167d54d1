#pragma once
#include <filesystem>

namespace drawpoint {

/// The two idx files of a labelled image data set.
struct IdxPair {
    std::filesystem::path images, labels;
};

/// Finds the files of MNIST, or of a data set with the same file names (Fashion-MNIST, KMNIST), in `folder`, folder/raw
/// or folder/MNIST/raw: {train,t10k}-{images-idx3,labels-idx1}-ubyte, with or without .gz. Throws std::invalid_argument
/// naming the folder and the missing file.
[[nodiscard]] IdxPair find_mnist(const std::filesystem::path& folder, bool train);

}   // namespace drawpoint
