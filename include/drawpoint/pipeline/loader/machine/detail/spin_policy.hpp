#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// Decides how long the loop's thread spins for a batch before it suspends. A spin that succeeds lengthens the next
/// one, a spin that fails halves it. Integer arithmetic only, without a clock; O(1). The loop's thread only.
class SpinPolicy {
public:
    /// How long a worker without work spins before it sleeps. The loop spins no longer than this where there are not
    /// more cores than workers.
    static constexpr std::int64_t worker_spin_ns = 5'000;
    /// The longest spin of a loop that has a core of its own. Waking a suspended loop costs a worker 5 to 10 µs.
    static constexpr std::int64_t longest_spin_ns = 80'000;
    static constexpr std::int64_t shortest_spin_ns = 500;
    /// One wait in this many spins for the longest time allowed, even if shorter spins have failed.
    static constexpr std::uint64_t waits_between_probes = 32;

    /// How often a worker that has spun leaves its core to others before it sleeps. Where there are not more cores than
    /// workers, a thread that is about to have work for it may be waiting for that core.
    [[nodiscard]] static constexpr int worker_yields(std::size_t cores, std::size_t num_workers) noexcept {
        return cores > num_workers ? 0 : 4;
    }

    SpinPolicy(std::size_t cores, std::size_t num_workers) noexcept : most_ns_{most_ns(cores, num_workers)} {}

    /// Changes the number of workers.
    void retarget(std::size_t cores, std::size_t num_workers) noexcept {
        most_ns_ = most_ns(cores, num_workers);
        ns_ = std::min(ns_, most_ns_);
    }
    /// Begins a wait; returns how long it may spin, in ns.
    [[nodiscard]] std::int64_t begin() noexcept { return ++waits_ % waits_between_probes == 0 ? most_ns_ : ns_; }
    /// The batch came after `spun_ns` of spinning.
    void succeeded(std::int64_t spun_ns) noexcept {
        ns_ = std::clamp(2 * spun_ns, std::min(worker_spin_ns, most_ns_), most_ns_);
    }
    /// The spin ended without a batch.
    void failed() noexcept { ns_ = std::max(ns_ / 2, shortest_spin_ns); }

private:
    [[nodiscard]] static constexpr std::int64_t most_ns(std::size_t cores, std::size_t num_workers) noexcept {
        return cores > num_workers ? longest_spin_ns : worker_spin_ns;
    }

    std::int64_t most_ns_, ns_ = worker_spin_ns;
    std::uint64_t waits_ = 0;
};

}   // namespace drawpoint
