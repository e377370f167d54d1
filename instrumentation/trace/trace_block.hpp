#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace drawpoint {

/// What a block of a recording begins with.
struct BlockHeader {
    std::uint64_t offset = 0;    ///< of the header in the file
    std::uint64_t records = 0;   ///< so far, with this block's
    std::uint64_t dropped = 0;   ///< so far
    std::uint64_t bytes = 0;     ///< of the packets that follow
    std::uint32_t crc32 = 0;     ///< of those packets and of the fields above

    /// The checksum that belongs to these fields and `packets`.
    [[nodiscard]] std::uint32_t checksum(std::string_view packets) const noexcept;
    /// The header as a packet.
    [[nodiscard]] std::string encoded() const;
};

/// Longest a header can be.
inline constexpr std::size_t max_header_bytes = 80;

struct ParsedHeader {
    enum class State : std::uint8_t {
        whole,
        cut,     ///< `bytes` ends inside the header
        wrong,   ///< no header, or a damaged one
    } state = State::wrong;
    BlockHeader header;
    std::size_t length = 0;   ///< of the header itself
};

/// Reads the header at the start of `bytes`, which stands at `offset` in its file. Accepts nothing but what `encoded()`
/// writes, so that every flipped bit shows.
[[nodiscard]] ParsedHeader parse_header(std::string_view bytes, std::uint64_t offset);

}   // namespace drawpoint
