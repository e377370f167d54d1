#pragma once

#include <algorithm>
#include <cstdint>

namespace drawpoint {

/// Every demand is shorter than this: 36 minutes.
inline constexpr std::int64_t most_demand_ns = std::int64_t{1} << 41;

/// A thread that leaves its core and comes back takes longer than this. A shorter wait is what two clocks, read one
/// after the other, differ by; replayed, the thread would lose its core.
inline constexpr std::int64_t least_wait_ns = 5'000;

/// Clamps a duration from a file, which may be damaged, to what a demand may be.
[[nodiscard]] constexpr std::int64_t bounded_ns(std::int64_t ns) noexcept {
    return std::clamp<std::int64_t>(ns, 0, most_demand_ns - 1);
}

}   // namespace drawpoint
