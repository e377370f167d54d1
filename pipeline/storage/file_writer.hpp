#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace drawpoint {

/// A new file, written from its begin to its end. What fails throws std::filesystem::filesystem_error with the path and
/// the system's own reason, a full disk among them.
class FileWriter {
public:
    /// Also throws when there is such a file.
    explicit FileWriter(std::filesystem::path path);
    ~FileWriter();
    FileWriter(const FileWriter&) = delete;
    FileWriter& operator=(const FileWriter&) = delete;

    void write(std::span<const std::byte> bytes);
    /// Without it nobody learns what some file systems say only now.
    void close();
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
    int descriptor_ = -1;
};

}   // namespace drawpoint
