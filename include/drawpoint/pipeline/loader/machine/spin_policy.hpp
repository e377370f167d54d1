#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace drawpoint {

/// How long the loop's thread spins for a batch before it suspends. Spinning that succeeds lengthens the next spin, spinning
/// in vain halves it. Pure integers; one thread.
class SpinPolicy {
public:
    /// A worker that finds no work looks for some this long before it sleeps. The loop spins no longer than this where
    /// threads outnumber cores.
    static constexpr std::int64_t worker_spin_ns = 5'000;
    /// The longest spin of a loop that has a core of its own: waking the loop costs a worker 5 to 10 µs.
    static constexpr std::int64_t longest_spin_ns = 80'000;
    static constexpr std::int64_t shortest_spin_ns = 500;
    /// Every so many waits the loop spins for as long as it may, although shorter spins have failed.
    static constexpr std::uint64_t waits_between_probes = 32;

    SpinPolicy(std::size_t cores, std::size_t num_workers) noexcept : most_ns_{most_ns(cores, num_workers)} {}

    /// Another number of workers from now on.
    void retarget(std::size_t cores, std::size_t num_workers) noexcept {
        most_ns_ = most_ns(cores, num_workers);
        ns_ = std::min(ns_, most_ns_);
    }
    /// A wait begins: how long it may spin, in ns.
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
