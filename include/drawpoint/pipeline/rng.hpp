#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// The Philox4x32-10 block function: 128 counter bits and 64 key bits in, 128 random bits out.
/// O(1), pure. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
constexpr std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                                     std::array<std::uint32_t, 2> key) noexcept {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
        const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
        counter = {
            static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
            static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
        key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
    }
    return counter;
}

/// Random numbers that depend on (seed, epoch, index) and on nothing else: not on threads, order or time.
/// O(1) to make and to draw from, never allocates; 2^34 numbers before the stream repeats.
class CounterRng {
public:
    /// The stream of sample `index` in epoch `epoch`; equal arguments give equal streams on every machine.
    constexpr CounterRng(std::uint64_t seed, std::uint32_t epoch, std::uint64_t index) noexcept
        : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
          counter_{0, epoch, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)} {}

    /// 32 random bits.
    constexpr std::uint32_t next_u32() noexcept {
        if (used_ == block_.size()) {
            block_ = philox4x32_10(counter_, key_);
            ++counter_[0];
            used_ = 0;
        }
        return block_[used_++];
    }

    /// Passes over this many numbers of next_u32(), modulo 2^34. O(1).
    constexpr void discard(std::uint64_t numbers) noexcept {
        const std::uint64_t at = std::uint64_t{counter_[0]} * 4 + used_ - 4 + numbers;
        counter_[0] = static_cast<std::uint32_t>(at / 4);
        used_ = at % 4;
        if (used_ == 0)
            used_ = 4;   // next_u32() computes the block
        else
            block_ = philox4x32_10(counter_, key_), ++counter_[0];
    }

    /// A double in [0, 1) with 53 random bits.
    constexpr double uniform() noexcept {
        const std::uint64_t high = next_u32();
        return static_cast<double>(((high << 32) | next_u32()) >> 11) * 0x1p-53;
    }

private:
    std::array<std::uint32_t, 2> key_;
    std::array<std::uint32_t, 4> counter_;
    std::array<std::uint32_t, 4> block_{};
    std::size_t used_ = 4;
};

}   // namespace drawpoint
