#pragma once

#include <algorithm>
#include <cstdint>

namespace drawpoint {

/// Every demand is shorter than this: 36 minutes.
inline constexpr std::int64_t most_demand_ns = std::int64_t{1} << 41;

/// Clamps a duration from a file, which may be damaged, to what a demand may be.
[[nodiscard]] constexpr std::int64_t bounded_ns(std::int64_t ns) noexcept {
    return std::clamp<std::int64_t>(ns, 0, most_demand_ns - 1);
}

}   // namespace drawpoint
