#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace drawpoint {

/// The header of a block of a recording.
struct BlockHeader {
    std::uint64_t offset = 0;    ///< position of the header in the file
    std::uint64_t records = 0;   ///< records in the file up to the end of this block
    std::uint64_t dropped = 0;   ///< records dropped so far
    std::uint64_t bytes = 0;     ///< size of the packets that follow
    std::uint32_t crc32 = 0;     ///< checksum of those packets and of the fields above

    /// The checksum of these fields and `packets`.
    [[nodiscard]] std::uint32_t checksum(std::string_view packets) const noexcept;
    /// The header encoded as a packet.
    [[nodiscard]] std::string encoded() const;
};

/// Maximal size of a header.
inline constexpr std::size_t max_header_bytes = 80;

struct ParsedHeader {
    enum class State : std::uint8_t {
        whole,
        cut,     ///< `bytes` ends inside the header
        wrong,   ///< no header, or a damaged one
    } state = State::wrong;
    BlockHeader header;
    std::size_t length = 0;   ///< size of the header itself
};

/// Reads the header at the start of `bytes`, which is at `offset` in the file. Accepts exactly the bytes that
/// `encoded()` writes, so that every flipped bit is detected.
[[nodiscard]] ParsedHeader parse_header(std::string_view bytes, std::uint64_t offset);

}   // namespace drawpoint
