#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace drawpoint {

/// A new file, written from its beginning to its end. Failures, such as a full disk, throw
/// std::filesystem::filesystem_error with the path and the system's reason.
class FileWriter {
public:
    /// Also throws when the file exists.
    explicit FileWriter(std::filesystem::path path);
    ~FileWriter();
    FileWriter(const FileWriter&) = delete;
    FileWriter& operator=(const FileWriter&) = delete;

    void write(std::span<const std::byte> bytes);
    /// Call it: some file systems report write errors only when the file is closed.
    void close();
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
    int descriptor_ = -1;
};

}   // namespace drawpoint
