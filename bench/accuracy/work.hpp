#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace drawpoint::bench {

/// Keeps a core busy for so many turns of a loop that touches no memory. Work, not time: two that share a core take twice as
/// long.
void burn(std::uint64_t turns) noexcept;

/// Turns a microsecond of a core that nothing disturbs: of many short probes the fastest. Takes 10 ms.
[[nodiscard]] double measure_turns_per_us();

/// The calling thread's.
[[nodiscard]] double thread_cpu_us() noexcept;

/// Sleeps to about 50 µs past the time asked for; 0 and less: not at all.
void sleep_us(double us) noexcept;

/// Threads that share work and wait for one another spinning, as a numerical library's do.
class WorkTeam {
public:
    /// `threads` with the calling one.
    explicit WorkTeam(std::size_t threads);
    ~WorkTeam();
    WorkTeam(const WorkTeam&) = delete;
    WorkTeam& operator=(const WorkTeam&) = delete;
    /// Burns turns in all; returns when all are done.
    void burn_together(std::uint64_t turns) noexcept;

private:
    void help() noexcept;

    std::atomic<std::uint32_t> round_{0};
    std::atomic<std::size_t> done_{0};
    std::atomic<std::uint64_t> share_{0};
    std::atomic<bool> stop_{false};
    std::vector<std::thread> helpers_;
};

/// Processes that keep cores busy while this lives.
class ForeignLoad {
public:
    /// Forks; the children do nothing but burn, and end with their parent. `share`: of their time, in turns of 7 ms, which
    /// below 1 needs `turns_per_us`.
    explicit ForeignLoad(std::size_t processes, double share = 1, double turns_per_us = 0);
    ~ForeignLoad();
    ForeignLoad(const ForeignLoad&) = delete;
    ForeignLoad& operator=(const ForeignLoad&) = delete;

private:
    std::vector<int> children_;
};

}   // namespace drawpoint::bench
