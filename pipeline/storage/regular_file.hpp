#pragma once

#include <cstdint>
#include <utility>

namespace drawpoint {

/// A regular file open for reading: never waits on a pipe, socket or device, which are refused. Or none.
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
    /// In bytes, when it was opened.
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] std::int64_t modified_ns() const noexcept { return modified_ns_; }
    /// The descriptor, which the caller closes from here on.
    [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }

private:
    int descriptor_ = -1;
    std::uint64_t size_ = 0;
    std::int64_t modified_ns_ = 0;
};

}   // namespace drawpoint
