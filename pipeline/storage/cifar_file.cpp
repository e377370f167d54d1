#include <drawpoint/pipeline/storage/cifar_file.hpp>

#include <stdexcept>
#include <string>
#include <system_error>

namespace drawpoint {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> find(const fs::path& folder, const char* binary, const char* pickled,
                           const std::vector<std::string>& names) {
    std::error_code error;
    for (const fs::path& below : {folder, folder / binary}) {
        if (!fs::exists(below / names.front(), error))
            continue;
        std::vector<fs::path> paths;
        for (const std::string& name : names) {
            if (!fs::exists(below / name, error))
                throw std::invalid_argument{below.string() + ": no file " + name};
            paths.push_back(below / name);
        }
        return paths;
    }
    std::string message = folder.string() + ": no file " + names.front() + " in it or in " + binary;
    if (fs::exists(folder / pickled, error))
        message += std::string{"; "} + pickled + " is the version for Python, take the binary version of the data set";
    throw std::invalid_argument{message};
}

}   // namespace

CifarFiles find_cifar10(const fs::path& folder, bool train) {
    std::vector<std::string> names{"test_batch.bin"};
    if (train)
        names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
    return {.paths = find(folder, "cifar-10-batches-bin", "cifar-10-batches-py", names), .pixels_at = 1, .classes = 10};
}

CifarFiles find_cifar100(const fs::path& folder, bool train, bool coarse) {
    return {.paths = find(folder, "cifar-100-binary", "cifar-100-python", {train ? "train.bin" : "test.bin"}),
            .label_at = coarse ? 0u : 1u,
            .pixels_at = 2,
            .classes = coarse ? 20 : 100};
}

}   // namespace drawpoint
