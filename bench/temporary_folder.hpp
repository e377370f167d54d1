#pragma once

#include <filesystem>

namespace drawpoint::bench {

/// A temporary folder, which the destructor removes. The constructor removes those that killed programs left: each has
/// a file that its program locks, and the system takes the lock back when the program ends.
class TemporaryFolder {
public:
    /// In the folder for temporary files. Throws std::runtime_error.
    TemporaryFolder();
    /// In memory, where the system has a place for it with a GiB to spare.
    [[nodiscard]] static TemporaryFolder in_memory();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    explicit TemporaryFolder(const std::filesystem::path& place);
    std::filesystem::path path_;
    int lock_ = -1;
};

}   // namespace drawpoint::bench
