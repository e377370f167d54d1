#pragma once

#include <algorithm>
#include <cstdint>

namespace drawpoint {

/// Chooses which pieces of a thread's work to measure, so that the readings cost at most 0.15 % of its time: one in n,
/// where n depends on the pieces' mean length and is 1 for pieces of several milliseconds. The choice is random, so
/// that no pattern in the work coincides with it, but the same lengths give the same choice. One thread at a time. A
/// few nanoseconds per call.
class ReadingBudget {
public:
    static constexpr double share = 0.0015;
    static constexpr double reading_ns = 500;   ///< approximate cost of one reading
    static constexpr double most_between = 4096;

    /// Whether to measure the piece that begins now. True at the first call.
    [[nodiscard]] bool next() noexcept {
        if (left_ > 0) {
            --left_;
            return false;
        }
        // Skips 0 to 2n - 2 pieces, uniformly distributed: n - 1 on average.
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;
        const double span = 2 * every() - 1;
        left_ = static_cast<std::uint32_t>(static_cast<double>(random_ >> 40) * 0x1p-24 * span);
        return true;
    }

    /// A piece took `ns`. `readings`: what measuring a piece costs, in readings of `reading_ns`.
    void took(std::int64_t ns, std::uint32_t readings) noexcept {
        const double length = static_cast<double>(std::max<std::int64_t>(ns, 1));   // a clock may step back
        mean_ns_ = mean_ns_ == 0 ? length : mean_ns_ + (std::min(length, straggler * mean_ns_) - mean_ns_) / 16;
        price_ns_ = readings * reading_ns;
    }

    /// The n of "one in n".
    [[nodiscard]] double every() const noexcept {
        if (price_ns_ <= share * mean_ns_ || price_ns_ == 0)
            return 1;
        return mean_ns_ > 0 ? std::min(price_ns_ / (share * mean_ns_), most_between) : most_between;
    }
    /// Whether a piece of this length is more than 8 times as long as the mean.
    [[nodiscard]] bool is_straggler(std::int64_t ns) const noexcept {
        return mean_ns_ > 0 && static_cast<double>(ns) > straggler * mean_ns_;
    }

private:
    static constexpr double straggler = 8;

    double mean_ns_ = 0, price_ns_ = 0;
    std::uint64_t random_ = 0x9e37'79b9'7f4a'7c15u;
    std::uint32_t left_ = 0;
};

}   // namespace drawpoint
