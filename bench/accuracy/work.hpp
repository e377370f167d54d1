#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace drawpoint::bench {

/// CPU time of the calling thread.
[[nodiscard]] double thread_cpu_us() noexcept;

/// Keeps a core busy, without touching memory, until the calling thread has had `us` of a core. Two threads that share
/// a core take twice as long; how fast the core is at the moment makes no difference.
void burn(double us) noexcept;

/// Sleeps; wakes a few µs late if the thread's timer slack is small, else 50 µs. Returns at once for 0 or less.
void sleep_us(double us) noexcept;

/// Threads that share work and wait for one another by spinning, as those of numerical libraries do.
class WorkTeam {
public:
    /// `threads` includes the calling one.
    explicit WorkTeam(std::size_t threads);
    ~WorkTeam();
    WorkTeam(const WorkTeam&) = delete;
    WorkTeam& operator=(const WorkTeam&) = delete;
    /// Burns `us` in total on all threads; returns when all are done.
    void burn_together(double us) noexcept;

private:
    void help() noexcept;

    std::atomic<std::uint32_t> round_{0};
    std::atomic<std::size_t> done_{0};
    std::atomic<double> share_us_{0};
    std::atomic<bool> stop_{false};
    std::vector<std::thread> helpers_;
};

/// Processes that keep cores busy during the lifetime of this object.
class ForeignLoad {
public:
    /// Forks processes that only burn, and end with their parent. `share`: the part of the time in which they burn, in
    /// periods of 7 ms.
    explicit ForeignLoad(std::size_t processes, double share = 1);
    ~ForeignLoad();
    ForeignLoad(const ForeignLoad&) = delete;
    ForeignLoad& operator=(const ForeignLoad&) = delete;

private:
    std::vector<int> children_;
};

}   // namespace drawpoint::bench
