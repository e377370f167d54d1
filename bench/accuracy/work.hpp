#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace drawpoint::bench {

/// Keeps a core busy for `turns` iterations of a loop that touches no memory. The amount of work is fixed, not the
/// time: two threads that share a core take twice as long.
void burn(std::uint64_t turns) noexcept;

/// Iterations per microsecond on an undisturbed core: the fastest of many short probes. Takes 10 ms.
[[nodiscard]] double measure_turns_per_us();

/// CPU time of the calling thread.
[[nodiscard]] double thread_cpu_us() noexcept;

/// Sleeps; wakes about 50 µs late. Returns at once for 0 or less.
void sleep_us(double us) noexcept;

/// Threads that share work and wait for one another by spinning, as those of numerical libraries do.
class WorkTeam {
public:
    /// `threads` includes the calling one.
    explicit WorkTeam(std::size_t threads);
    ~WorkTeam();
    WorkTeam(const WorkTeam&) = delete;
    WorkTeam& operator=(const WorkTeam&) = delete;
    /// Burns `turns` iterations in total on all threads; returns when all are done.
    void burn_together(std::uint64_t turns) noexcept;

private:
    void help() noexcept;

    std::atomic<std::uint32_t> round_{0};
    std::atomic<std::size_t> done_{0};
    std::atomic<std::uint64_t> share_{0};
    std::atomic<bool> stop_{false};
    std::vector<std::thread> helpers_;
};

/// Processes that keep cores busy during the lifetime of this object.
class ForeignLoad {
public:
    /// Forks processes that only burn, and end with their parent. `share`: the part of the time in which they burn, in
    /// periods of 7 ms; below 1 it needs `turns_per_us`.
    explicit ForeignLoad(std::size_t processes, double share = 1, double turns_per_us = 0);
    ~ForeignLoad();
    ForeignLoad(const ForeignLoad&) = delete;
    ForeignLoad& operator=(const ForeignLoad&) = delete;

private:
    std::vector<int> children_;
};

}   // namespace drawpoint::bench
