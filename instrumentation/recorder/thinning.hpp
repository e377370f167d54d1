#pragma once

#include <algorithm>
#include <cstdint>

namespace drawpoint {

/// How much of a recording of bounded size is kept: slices and flows of every 8th batch from a quarter of the limit, of
/// every 64th from a half; from three quarters samples of every 4th batch, and of 4 times fewer each time half of what
/// is left is used: however long the run, no more passes the limit than the batches in flight at a change.
class Thinning {
public:
    explicit Thinning(std::uint64_t limit_bytes) noexcept : limit_{limit_bytes} {}

    /// True if the level changed with `used_bytes`, which never falls.
    bool update(std::uint64_t used_bytes) noexcept {
        const unsigned before = level_;
        while (level_ < last_level && used_bytes >= threshold(level_ + 1))
            ++level_;
        return level_ != before;
    }
    [[nodiscard]] std::uint32_t samples_every() const noexcept { return level_ < 3 ? 1 : 1u << (2 * (level_ - 2)); }
    /// A multiple of `samples_every()`: slices without their sample would say nothing.
    [[nodiscard]] std::uint32_t slices_every() const noexcept {
        return level_ == 0 ? 1 : level_ == 1 ? 8 : std::max(64u, samples_every());
    }

private:
    static constexpr unsigned last_level = 17;   // of every 2^30th batch

    [[nodiscard]] std::uint64_t threshold(unsigned level) const noexcept {
        const std::uint64_t quarter = limit_ / 4;
        return level <= 2 ? level * quarter : limit_ - (quarter >> (level - 3));
    }
    std::uint64_t limit_;
    unsigned level_ = 0;
};

}   // namespace drawpoint
