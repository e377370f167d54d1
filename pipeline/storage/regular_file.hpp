#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace drawpoint {

/// How many files one data set or loader may keep open: a quarter of what the process may have (RLIMIT_NOFILE), so that
/// two leave half of it. A system call.
[[nodiscard]] std::size_t most_open_files() noexcept;

/// A regular file open for reading, or none. Pipes, sockets and devices are refused rather than waited for.
class RegularFile {
public:
    RegularFile() = default;
    /// Throws std::filesystem::filesystem_error: missing, unreadable, not a regular file.
    explicit RegularFile(const char* path);
    RegularFile(RegularFile&& other) noexcept
        : descriptor_{other.release()}, size_{other.size_}, modified_ns_{other.modified_ns_} {}
    RegularFile& operator=(RegularFile&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        size_ = other.size_;
        modified_ns_ = other.modified_ns_;
        return *this;
    }
    ~RegularFile();

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    /// Bytes, when it was opened.
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] std::int64_t modified_ns() const noexcept { return modified_ns_; }
    /// Hands over the descriptor: the caller must close it.
    [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }

private:
    int descriptor_ = -1;
    std::uint64_t size_ = 0;
    std::int64_t modified_ns_ = 0;
};

}   // namespace drawpoint
