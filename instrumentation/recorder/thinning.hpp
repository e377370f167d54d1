#pragma once

#include <algorithm>
#include <cstdint>

namespace drawpoint {

/// How much of a recording of limited size is kept. Once a quarter of the limit is used, slices and flows are kept of
/// every 8th batch, from a half on of every 64th. From three quarters on, samples are kept of every 4th batch, and of 4
/// times fewer each time half of what is left is used. So, however long the run, only batches in flight at such a
/// change can exceed the limit.
class Thinning {
public:
    explicit Thinning(std::uint64_t limit_bytes) noexcept : limit_{limit_bytes} {}

    /// Returns whether the level changed. `used_bytes` never falls.
    bool update(std::uint64_t used_bytes) noexcept {
        const unsigned before = level_;
        while (level_ < last_level && used_bytes >= threshold(level_ + 1))
            ++level_;
        return level_ != before;
    }
    [[nodiscard]] std::uint32_t samples_every() const noexcept { return level_ < 3 ? 1 : 1u << (2 * (level_ - 2)); }
    /// A multiple of `samples_every()`: slices are of no use without their sample.
    [[nodiscard]] std::uint32_t slices_every() const noexcept {
        return level_ == 0 ? 1 : level_ == 1 ? 8 : std::max(64u, samples_every());
    }

private:
    static constexpr unsigned last_level = 17;   // samples of every 2^30th batch

    [[nodiscard]] std::uint64_t threshold(unsigned level) const noexcept {
        const std::uint64_t quarter = limit_ / 4;
        return level <= 2 ? level * quarter : limit_ - (quarter >> (level - 3));
    }
    std::uint64_t limit_;
    unsigned level_ = 0;
};

}   // namespace drawpoint
