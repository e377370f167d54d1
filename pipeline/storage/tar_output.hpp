#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include <drawpoint/pipeline/storage/tar_pack.hpp>

namespace drawpoint {

/// Writes one tar file, compressed or not: ustar, regular files without owner or date, so equal members give equal
/// bytes. Throws std::filesystem::filesystem_error naming the file.
class TarOutput {
public:
    TarOutput(std::filesystem::path path, TarCompression compression);
    ~TarOutput();

    /// Bytes of the archive that a member occupies.
    [[nodiscard]] static std::uint64_t member_bytes(std::string_view name, std::uint64_t bytes);
    /// Length of an archive whose members occupy `members` bytes.
    [[nodiscard]] static std::uint64_t archive_bytes(std::uint64_t members) noexcept;
    /// Appends a member; returns the offset of its contents in the archive. A name too long for ustar goes into a pax
    /// header.
    std::uint64_t add(std::string_view name, std::span<const std::byte> contents);
    /// Length of the archive so far, before compression.
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
    /// Writes the end of the archive and closes the file, which is incomplete without it.
    void finish();

private:
    class Sink;
    void write(std::span<const std::byte> bytes);
    void write_member(std::string_view name, std::string_view prefix, char type, std::span<const std::byte> contents);

    std::unique_ptr<Sink> sink_;
    std::uint64_t position_ = 0;
};

}   // namespace drawpoint
