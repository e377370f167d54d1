#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <drawpoint/pipeline/storage/tar_pack.hpp>

#include "pipeline/storage/regular_file.hpp"

namespace drawpoint {

/// The bytes of an archive, read forward: a file as it is, or decompressed. Used by one thread at a time; opening the
/// next file allocates nothing.
class TarInput {
public:
    /// `buffer_bytes`: of the file, read at once.
    explicit TarInput(std::size_t buffer_bytes);
    ~TarInput();

    /// Begins the file, whose first bytes tell the compression. `path` lives until the next open().
    void open(const char* path);
    void close() noexcept { file_ = RegularFile{}; }
    /// The open file, for reading at random; as close().
    [[nodiscard]] RegularFile take_file() noexcept { return std::move(file_); }
    [[nodiscard]] bool is_open() const noexcept { return file_.descriptor() >= 0; }

    [[nodiscard]] const char* path() const noexcept { return path_; }
    [[nodiscard]] const RegularFile& file() const noexcept { return file_; }
    [[nodiscard]] TarCompression compression() const noexcept { return compression_; }
    /// In the archive, after decompression.
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

    /// Fills `out`; returns fewer bytes only at the archive's end. Throws TarError: broken compressed data, cut short.
    std::size_t read(std::span<std::byte> out);
    /// Passes `bytes` by. In a file as it is this moves only the position, past the end too. Throws as read().
    void skip(std::uint64_t bytes);

private:
    struct Decompressors;
    bool refill();
    std::size_t inflate_some(std::span<std::byte> out);
    std::size_t unzstd_some(std::span<std::byte> out);
    [[nodiscard]] std::uint64_t file_position() const noexcept { return file_at_ - (end_ - begin_); }

    const char* path_ = nullptr;
    RegularFile file_;
    TarCompression compression_ = TarCompression::none;
    std::uint64_t position_ = 0, file_at_ = 0;
    std::vector<std::byte> buffer_, passed_;
    std::size_t begin_ = 0, end_ = 0;   // what is unread of buffer_
    bool in_frame_ = false;             // of compressed data
    std::unique_ptr<Decompressors> decompressors_;
};

}   // namespace drawpoint
