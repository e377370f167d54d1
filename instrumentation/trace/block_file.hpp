#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace drawpoint {

/// A recording's file, read piece by piece. It may grow meanwhile.
class BlockFile {
public:
    /// Throws std::system_error naming a file that can't be read, and TraceError for one that is no regular file.
    explicit BlockFile(const std::filesystem::path&);
    ~BlockFile();
    BlockFile(const BlockFile&) = delete;
    BlockFile& operator=(const BlockFile&) = delete;

    /// As it was when last looked at: when the file was opened, or at `look()`.
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    void look();
    /// The bytes from `at` on, `most` or as many as there are; valid until the next call.
    [[nodiscard]] std::string_view read(std::uint64_t at, std::size_t most);
    /// The first place from `at` on that is not in a hole of the file; its size if there is none.
    [[nodiscard]] std::uint64_t next_data(std::uint64_t at) const noexcept;

private:
    [[noreturn]] void fail(int error) const;

    std::string path_;
    int number_ = -1;
    std::uint64_t size_ = 0;
    std::string content_;
};

}   // namespace drawpoint
