#pragma once
#include <filesystem>

namespace drawpoint {

/// The two idx files of an image data set.
struct IdxPair {
    std::filesystem::path images, labels;
};

/// MNIST's files (or those of a data set that names them alike: Fashion-MNIST, KMNIST) in `folder`, folder/raw or
/// folder/MNIST/raw: {train,t10k}-{images-idx3,labels-idx1}-ubyte, with .gz or without. Throws std::invalid_argument
/// naming the folder and the file that is missing.
[[nodiscard]] IdxPair find_mnist(const std::filesystem::path& folder, bool train);

}   // namespace drawpoint
