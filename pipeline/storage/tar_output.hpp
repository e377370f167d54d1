#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include <drawpoint/pipeline/storage/tar_pack.hpp>

namespace drawpoint {

/// Writes one tar file, compressed or not: ustar, regular files of no owner and no date, so equal members give equal
/// bytes. Throws std::filesystem::filesystem_error naming the file.
class TarOutput {
public:
    TarOutput(std::filesystem::path path, TarCompression compression);
    ~TarOutput();

    /// How many bytes of the archive a member takes.
    [[nodiscard]] static std::uint64_t member_bytes(std::string_view name, std::uint64_t bytes);
    /// How long an archive is whose members take `members` bytes.
    [[nodiscard]] static std::uint64_t archive_bytes(std::uint64_t members) noexcept;
    /// Returns where its contents begin in the archive. A name that ustar cannot hold goes into a pax header.
    std::uint64_t add(std::string_view name, std::span<const std::byte> contents);
    /// Of the archive so far, before compression.
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
    /// Writes the archive's end and closes the file. Without it the file is not whole.
    void finish();

private:
    class Sink;
    void write(std::span<const std::byte> bytes);
    void write_member(std::string_view name, std::string_view prefix, char type, std::span<const std::byte> contents);

    std::unique_ptr<Sink> sink_;
    std::uint64_t position_ = 0;
};

}   // namespace drawpoint
