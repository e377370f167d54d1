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

/// `bytes` in whole blocks.
[[nodiscard]] constexpr std::uint64_t tar_padded(std::uint64_t bytes) noexcept {
    return (bytes + (tar_block - 1)) / tar_block * tar_block;
}

/// Whether the block's checksum is right: a header, of whatever kind.
[[nodiscard]] bool is_tar_header(const TarBlock& block) noexcept;

/// One member of an archive.
struct TarMember {
    std::string name;
    bool is_folder = false;
    std::uint64_t header = 0;   ///< where its header begins, with those that lengthen it
    std::uint64_t offset = 0;   ///< where its contents begin; its own header lies in the block before
    std::uint64_t bytes = 0;
};

/// Goes through an archive's headers: ustar, GNU and pax, long names and sizes. Links, devices and sparse files are
/// refused. Every size is checked before it is believed; no contents are read that are not asked for.
class TarReader {
public:
    /// `input` is open, at its begin, and outlives the reader.
    explicit TarReader(TarInput& input) noexcept : input_{&input} {}
    /// From the header at `next` on, which is not behind the input's position.
    TarReader(TarInput& input, std::uint64_t next) noexcept : input_{&input}, next_{next} {}

    /// The next member; false at the archive's end, once all that follows was found to be padding. Throws TarError.
    bool next(TarMember& member);
    /// What the member that next() gave last holds, at most `limit` bytes: more is refused. Once per member.
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
    std::uint64_t next_ = 0;   // where the next header begins
};

}   // namespace drawpoint
