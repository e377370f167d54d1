#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace drawpoint::simulation {

// Runs a program and all threads that it starts one at a time, in virtual time. Which thread goes on is decided, by a
// seed, wherever a thread locks or unlocks a mutex, waits, wakes another, yields, or reads the clock: so the same seed
// gives the same run. For that, this program replaces pthread_mutex_lock and its like, the futex system call and
// clock_gettime: what is tested is compiled as for users. Memory orders are not simulated; tests/model has these.

/// Runs `program` on the calling thread, as one of the simulated ones; it must have joined all others when it ends.
/// If all threads wait for each other, prints `what` and ends the process with status 3.
void run(std::uint64_t seed, const char* what, const std::function<void()>& program);

/// The same, but time passes only where the program sleeps, computes (below) or reads the clock, 100 ns each: a thread
/// that is woken goes on at once, on a core of its own, and its CPU time is what it computed. It begins now, by the
/// system's clock. Threads that run beside the simulation may hold mutexes.
void run_exactly(std::uint64_t seed, const char* what, const std::function<void()>& program);
inline constexpr std::size_t exact_cores = 16;   ///< that the simulated machine has then, else 2

// For use inside of it.
/// A number below `limit`, by the seed.
[[nodiscard]] std::uint64_t below(std::uint64_t limit) noexcept;
/// Lets other threads go on.
void yield() noexcept;
/// Lets others go on until so much virtual time has passed.
void sleep_for(std::int64_t ns) noexcept;
/// The same, as CPU time of this thread.
void compute(std::int64_t ns) noexcept;
/// The time, which does not pass by asking.
[[nodiscard]] std::int64_t now_ns() noexcept;
/// The program has nothing to do until another thread or a timer gives it something.
void idle() noexcept;
/// How often a thread was chosen so far.
[[nodiscard]] std::uint64_t steps() noexcept;
/// A hash of all choices so far.
[[nodiscard]] std::uint64_t history() noexcept;

}   // namespace drawpoint::simulation
