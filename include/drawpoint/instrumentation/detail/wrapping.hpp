#pragma once

#include <cstdint>

namespace drawpoint {

// Stamps of a foreign or damaged recording may have any value, so sums and differences are computed modulo 2^64.

constexpr std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

constexpr std::uint64_t wrapping_difference(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
}

}   // namespace drawpoint
