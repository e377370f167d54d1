#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace drawpoint {

/// Converts a device's times to the loop's clock: by a difference that only changes where what is known of it says so.
/// All in nanoseconds. It allows the two clocks to drift apart by 100 ns in a millisecond.
class DeviceClock {
public:
    /// The device's `at_ns` was not before `host_ns`, or not after it.
    void not_before(std::int64_t at_ns, std::int64_t host_ns) noexcept {
        widen(at_ns);
        lower_ = std::max(lower_, host_ns - at_ns);
        adjust();
    }
    void not_after(std::int64_t at_ns, std::int64_t host_ns) noexcept {
        widen(at_ns);
        upper_ = std::min(upper_, host_ns - at_ns);
        adjust();
    }
    /// Takes the middle of what is known.
    void settle() noexcept { difference_ = lower_ + (upper_ - lower_) / 2; }

    [[nodiscard]] std::int64_t host_ns(std::int64_t at_ns) const noexcept { return at_ns + difference_; }
    /// How far host_ns() may be off. If what is known contradicts itself, by how much.
    [[nodiscard]] std::int64_t uncertainty_ns() const noexcept {
        return std::max({upper_ - difference_, difference_ - lower_, lower_ - upper_});
    }

private:
    static constexpr std::int64_t drift = 10'000;   // 1 ns in so many
    static constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max() / 4;

    void widen(std::int64_t at_ns) noexcept {
        const std::int64_t by = std::max<std::int64_t>(at_ns - at_ns_, 0) / drift;
        at_ns_ += by * drift;
        lower_ -= by;
        upper_ += by;
    }
    void adjust() noexcept {
        if (lower_ <= upper_)
            difference_ = std::clamp(difference_, lower_, upper_);
        else
            difference_ = upper_ + (lower_ - upper_) / 2;
    }

    std::int64_t at_ns_ = 0, lower_ = -far, upper_ = far, difference_ = 0;
};

}   // namespace drawpoint
