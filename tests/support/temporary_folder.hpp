#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <stdlib.h>

namespace drawpoint::test {

/// An empty folder; the destructor removes it with everything in it.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "drawpoint-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr)
            throw std::runtime_error{"no temporary folder: " + name};
        path_ = name;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
    [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
    [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }

    /// Writes a file, creating missing folders above it.
    std::filesystem::path write(const std::string& name, const std::vector<std::byte>& contents) const {
        const std::filesystem::path file = path_ / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream out{file, std::ios::binary};
        out.write(reinterpret_cast<const char*>(contents.data()), static_cast<std::streamsize>(contents.size()));
        return file;
    }

private:
    std::filesystem::path path_;
};

/// The content of a file; empty if there is no such file.
inline std::string bytes_in(const std::filesystem::path& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

inline void put_bytes(const std::filesystem::path& file, std::string_view bytes) {
    std::ofstream out{file, std::ios::binary | std::ios::trunc};
    out << bytes;
}

}   // namespace drawpoint::test
