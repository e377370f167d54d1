#pragma once

#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// What a loader decides about reads ahead of its workers: whether they pay, how many at a time, how many samples may be held.
/// Pure integers without threads, clock or I/O, so that a loader and a simulator in virtual time decide alike. Nothing
/// allocates; O(1). One thread at a time (the driver's mutex).
class ReadPolicy {
public:
    /// `concurrency`: reads in flight at most; 0: never ahead. `num_workers`: threads making samples, at least 1 is taken.
    ReadPolicy(std::size_t concurrency, std::size_t num_workers) noexcept;

    /// `reads` took `ns` in all, `blocked_ns` of which in reads that had to wait for storage; by whomever.
    void observe_reads(std::uint64_t reads, std::uint64_t ns, std::uint64_t blocked_ns) noexcept;
    /// `samples` took one worker `ns` in all to make from bytes already read.
    void observe_samples(std::uint64_t samples, std::uint64_t ns) noexcept;

    /// Other numbers from now on; `concurrency` stays 0 if it was.
    void retarget(std::size_t concurrency, std::size_t num_workers) noexcept;

    /// Whether somebody should read ahead: the mean wait for storage is above 30 µs and 1/64 of what making a sample takes; once
    /// on, until it falls below half of that.
    [[nodiscard]] bool ahead() const noexcept { return ahead_; }
    /// Reads to keep in flight: rate × latency and half as many again, 1 … concurrency.
    [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }
    /// No further read begins while so many samples are read or being read, ≤ most_held(concurrency). A running reader goes on
    /// until then, a sleeping one is woken only below wake_below(): between the two, reads in flight stay as many as they are.
    [[nodiscard]] std::size_t hold() const noexcept { return hold_; }
    [[nodiscard]] std::size_t wake_below() const noexcept { return wake_below_; }

    /// hold() at most.
    [[nodiscard]] static constexpr std::size_t most_held(std::size_t concurrency) noexcept { return 2 * concurrency; }

private:
    void decide() noexcept;

    std::size_t concurrency_, num_workers_;
    std::uint64_t reads_ = 0;                                                  // seen, up to `enough_reads`
    std::uint64_t read_ns_x16_ = 0, blocked_ns_x16_ = 0, sample_ns_x16_ = 0;   // moving averages
    std::size_t in_flight_ = 1, hold_ = 1, wake_below_ = 1;
    bool ahead_ = false;
};

}   // namespace drawpoint
