#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/storage/tar_input.hpp"

namespace drawpoint {

inline constexpr std::size_t tar_block = 512;
using TarBlock = std::array<std::byte, tar_block>;

/// `bytes` rounded up to whole blocks.
[[nodiscard]] constexpr std::uint64_t tar_padded(std::uint64_t bytes) noexcept {
    return (bytes + (tar_block - 1)) / tar_block * tar_block;
}

/// Whether the block's checksum is right, so that it is a header of some kind.
[[nodiscard]] bool is_tar_header(const TarBlock& block) noexcept;

/// One member of an archive.
struct TarMember {
    std::string name;
    bool is_folder = false;
    std::uint64_t header = 0;   ///< offset of its first header: long names and pax records precede its own
    std::uint64_t offset = 0;   ///< offset of its contents; its own header is the block before
    std::uint64_t bytes = 0;
};

/// Iterates over an archive's members: ustar, GNU and pax, with long names and sizes. Links, devices and sparse files
/// are refused. Every size is checked before it is used; only requested contents are read.
class TarReader {
public:
    /// `input` is open and at its beginning; it must outlive the reader.
    explicit TarReader(TarInput& input) noexcept : input_{&input} {}
    /// Starts at the header at offset `next`, which must not be before the input's position.
    TarReader(TarInput& input, std::uint64_t next) noexcept : input_{&input}, next_{next} {}

    /// Moves to the next member; false at the archive's end, after checking that only padding follows. Throws TarError.
    bool next(TarMember& member);
    /// Reads the contents of the member that next() returned last; more than `limit` bytes are refused. Once per
    /// member.
    void contents(const TarMember& member, std::size_t limit, std::string& out);

private:
    struct Extended;
    [[noreturn]] void refuse(std::uint64_t offset, const std::string& what) const;
    void read_whole(std::span<std::byte> out, const char* what);
    void read_text(std::uint64_t bytes, std::uint64_t header, std::size_t limit, const char* what, std::string& out);
    void read_pax(std::string_view records, std::uint64_t header, Extended& to) const;
    void check_fits(std::uint64_t header, std::uint64_t bytes) const;
    void check_end(std::uint64_t offset);

    TarInput* input_;
    std::uint64_t next_ = 0;   // offset of the next header
};

}   // namespace drawpoint
