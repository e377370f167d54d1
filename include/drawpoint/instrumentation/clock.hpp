#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>

namespace drawpoint {

namespace detail {
#if defined(__x86_64__)
__extension__ using UInt128 = unsigned __int128;   // not in ISO C++
#endif
}   // namespace detail

/// A source of stamps: nanoseconds on CLOCK_MONOTONIC's scale (usually since boot; a ManualClock has its own) that
/// never go back on one thread.
template <class C>
concept Clock = requires(const C& clock) {
    { clock.now_ns() } noexcept -> std::same_as<std::int64_t>;
};

/// CLOCK_MONOTONIC. About 20-30 ns a reading. Any thread.
class SteadyClock {
public:
    [[nodiscard]] std::int64_t now_ns() const noexcept {
        return std::chrono::steady_clock::now().time_since_epoch().count();
    }
};

/// The processor's time-stamp counter, calibrated once against CLOCK_MONOTONIC. About 9 ns a reading. Any thread.
/// Drifts from CLOCK_MONOTONIC by the calibration's error, a few parts per million.
class TscClock {
public:
    /// Calibrates over the time since the program was loaded; waits if that is less than 2 ms.
    /// Use only if `available()`.
    TscClock() noexcept;

    /// How ticks become nanoseconds. Handed to another process of this machine, that process stamps on the same scale.
    struct Scale {
        std::uint64_t base_ticks = 0, multiplier = 0;
        std::int64_t base_ns = 0;
    };
    explicit TscClock(const Scale& scale) noexcept
        : base_ticks_{scale.base_ticks}, multiplier_{scale.multiplier}, base_ns_{scale.base_ns} {}
    [[nodiscard]] Scale scale() const noexcept { return {base_ticks_, multiplier_, base_ns_}; }

    /// Whether the counter runs at a constant rate on every core (x86-64: constant_tsc and nonstop_tsc) and the kernel,
    /// which monitors it, still offers it as a clock source. Determined once.
    [[nodiscard]] static bool available() noexcept;

    [[nodiscard]] std::int64_t now_ns() const noexcept {
#if defined(__x86_64__)
        const auto ticks = static_cast<detail::UInt128>(__builtin_ia32_rdtsc() - base_ticks_);
        return base_ns_ + static_cast<std::int64_t>((ticks * multiplier_) >> 32);
#else
        return SteadyClock{}.now_ns();
#endif
    }

private:
    std::uint64_t base_ticks_ = 0;
    std::uint64_t multiplier_ = 0;   // nanoseconds per tick, 32 fractional bits
    std::int64_t base_ns_ = 0;
};

/// A clock that stands still until it is advanced, for tests and simulations. Any thread may read and advance it.
class ManualClock {
public:
    explicit ManualClock(std::int64_t start_ns = 0) noexcept : now_ns_{start_ns} {}
    ManualClock(const ManualClock&) = delete;
    ManualClock& operator=(const ManualClock&) = delete;

    [[nodiscard]] std::int64_t now_ns() const noexcept { return now_ns_.load(std::memory_order_relaxed); }
    void advance(std::chrono::nanoseconds by) noexcept { now_ns_.fetch_add(by.count(), std::memory_order_relaxed); }

private:
    std::atomic<std::int64_t> now_ns_;
};

/// The clock that a recorder reads: one of the above, behind one predictable branch. A small value, cheap to copy.
/// A `ManualClock` passed in must outlive every copy.
class AnyClock {
public:
    /// The time-stamp counter where it is reliable, else CLOCK_MONOTONIC. May wait 2 ms (`TscClock`).
    AnyClock() noexcept;
    explicit AnyClock(SteadyClock) noexcept : kind_{Kind::steady} {}
    explicit AnyClock(const TscClock& tsc) noexcept : kind_{Kind::tsc}, tsc_{tsc} {}
    explicit AnyClock(const ManualClock& manual) noexcept : kind_{Kind::manual}, manual_{&manual} {}

    [[nodiscard]] std::int64_t now_ns() const noexcept {
        if (kind_ == Kind::tsc) [[likely]]
            return tsc_.now_ns();
        return kind_ == Kind::steady ? SteadyClock{}.now_ns() : manual_->now_ns();
    }

    /// Of the time-stamp counter; null if this clock is another one.
    [[nodiscard]] const TscClock* tsc() const noexcept { return kind_ == Kind::tsc ? &tsc_ : nullptr; }

    /// Whether its time is not real time, so that the system's own measurements do not relate to it.
    [[nodiscard]] bool is_manual() const noexcept { return kind_ == Kind::manual; }
    /// "tsc", "steady" or "manual".
    [[nodiscard]] const char* name() const noexcept;

private:
    enum class Kind : std::uint8_t { steady, tsc, manual };

    /// Active while the union holds no clock: a TscClock would cost its calibration.
    struct Uncalibrated {};
    Kind kind_;
    union {
        Uncalibrated none_ = {};
        TscClock tsc_;
        const ManualClock* manual_;
    };
};

static_assert(Clock<SteadyClock> && Clock<TscClock> && Clock<ManualClock> && Clock<AnyClock>);

}   // namespace drawpoint
