#pragma once

#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// Decides about reading samples ahead of the workers: whether it pays, how many reads run at once, and how many
/// samples may be held. Integer arithmetic without threads, clock or I/O, so that the loader and the simulator in
/// virtual time decide alike. Nothing allocates; O(1). Calls must not overlap (the driver's mutex).
class ReadPolicy {
public:
    /// `concurrency`: most reads in flight; 0: never read ahead. `num_workers`: threads making samples; 0 counts as 1.
    ReadPolicy(std::size_t concurrency, std::size_t num_workers) noexcept;

    /// `reads` reads, by workers or readers, took `ns` in all; `blocked_ns` of it in reads that waited for storage.
    void observe_reads(std::uint64_t reads, std::uint64_t ns, std::uint64_t blocked_ns) noexcept;
    /// One worker made `samples` samples from bytes already read in `ns` in all.
    void observe_samples(std::uint64_t samples, std::uint64_t ns) noexcept;

    /// Changes the numbers; a `concurrency` of 0 stays 0.
    void retarget(std::size_t concurrency, std::size_t num_workers) noexcept;

    /// Whether to read ahead: once the mean wait for storage exceeds 30 µs and 1/64 of the time to make a sample,
    /// until it falls below half of that.
    [[nodiscard]] bool ahead() const noexcept { return ahead_; }
    /// Reads to keep in flight, 1 … concurrency: the workers' rate × the latency of a read, and half as many again.
    [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }
    /// No further read begins while this many samples are read or being read; ≤ most_held(concurrency). A reader at
    /// work goes on up to hold(), a sleeping one is woken only below wake_below(). Between the two, the number of reads
    /// in flight stays as it is.
    [[nodiscard]] std::size_t hold() const noexcept { return hold_; }
    [[nodiscard]] std::size_t wake_below() const noexcept { return wake_below_; }

    /// The largest value of hold().
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
