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

/// Reads an archive's bytes sequentially, decompressing them if necessary. Used by one thread at a time; opening the
/// next file allocates nothing.
class TarInput {
public:
    /// `buffer_bytes`: how much of the file is read at once.
    explicit TarInput(std::size_t buffer_bytes);
    ~TarInput();

    /// Opens the file and recognises its compression by the first bytes. `path` must stay valid until the next open().
    void open(const char* path);
    void close() noexcept { file_ = RegularFile{}; }
    /// Closes the input, but hands over the open file for random reads.
    [[nodiscard]] RegularFile take_file() noexcept { return std::move(file_); }
    [[nodiscard]] bool is_open() const noexcept { return file_.descriptor() >= 0; }

    [[nodiscard]] const char* path() const noexcept { return path_; }
    [[nodiscard]] const RegularFile& file() const noexcept { return file_; }
    [[nodiscard]] TarCompression compression() const noexcept { return compression_; }
    /// Offset in the archive, after decompression.
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

    /// Fills `out`; returns fewer bytes only at the archive's end. Throws TarError if compressed data is damaged or
    /// truncated.
    std::size_t read(std::span<std::byte> out);
    /// Skips `bytes`. In an uncompressed file this only moves the position, even past the end. Throws as read().
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
    std::size_t begin_ = 0, end_ = 0;   // the unread part of buffer_
    bool in_frame_ = false;             // inside a frame of compressed data
    std::unique_ptr<Decompressors> decompressors_;
};

}   // namespace drawpoint
