#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include <drawpoint/pipeline/rng.hpp>

namespace drawpoint {

/// A pseudo-random permutation of 0 … n - 1 that is computed index by index, without memory: an alternating Feistel
/// network on the least number of bits that n needs, walked along its cycle until the result is below n (on average
/// less than two steps). Sources: Luby, Rackoff, "How to construct pseudorandom permutations from pseudorandom
/// functions", 1988; Black, Rogaway, "Ciphers with arbitrary finite domains", 2002.
class KeyedPermutation {
public:
    /// n ≥ 2. The keys are the stream's next numbers.
    KeyedPermutation(std::uint64_t n, CounterRng keys) noexcept
        : n_{n}, low_bits_{static_cast<unsigned>(std::bit_width(n - 1)) / 2} {
        const unsigned bits = static_cast<unsigned>(std::bit_width(n - 1));
        low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
        high_mask_ = (std::uint64_t{1} << (bits - low_bits_)) - 1;
        for (std::uint64_t& key : keys_) {
            const std::uint64_t high = keys.next_u32();
            key = high << 32 | keys.next_u32();
        }
    }

    /// `index` < n.
    [[nodiscard]] std::uint64_t operator()(std::uint64_t index) const noexcept {
        do {
            std::uint64_t low = index & low_mask_, high = index >> low_bits_;
            for (std::size_t round = 0; round < keys_.size(); round += 2) {
                low ^= mixed(high ^ keys_[round]) & low_mask_;
                high ^= mixed(low ^ keys_[round + 1]) & high_mask_;
            }
            index = high << low_bits_ | low;
        } while (index >= n_);
        return index;
    }

private:
    static constexpr std::uint64_t mixed(std::uint64_t x) noexcept {   // of splitmix64
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
        x = (x ^ x >> 27) * 0x94D049BB133111EB;
        return x ^ x >> 31;
    }

    std::uint64_t n_;
    unsigned low_bits_;
    std::uint64_t low_mask_ = 0, high_mask_ = 0;
    std::array<std::uint64_t, 8> keys_{};
};

}   // namespace drawpoint
