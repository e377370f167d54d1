#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <stdlib.h>

namespace drawpoint::test {

/// A folder of its own, gone with it.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "drawpoint-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr)
            throw std::runtime_error{"no temporary folder"};
        path_ = name;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code stays;
        std::filesystem::remove_all(path_, stays);
    }
    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

inline std::string bytes_in(const std::filesystem::path& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

inline void put_bytes(const std::filesystem::path& file, const std::string& bytes) {
    std::ofstream out{file, std::ios::binary | std::ios::trunc};
    out << bytes;
}

}   // namespace drawpoint::test
