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

// For use inside of it.
/// A number below `limit`, by the seed.
[[nodiscard]] std::uint64_t below(std::uint64_t limit) noexcept;
/// Lets other threads go on.
void yield() noexcept;
/// Lets others go on until so much virtual time has passed.
void sleep_for(std::int64_t ns) noexcept;
/// The program has nothing to do until another thread or a timer gives it something.
void idle() noexcept;
/// How often a thread was chosen so far.
[[nodiscard]] std::uint64_t steps() noexcept;
/// A hash of all choices so far.
[[nodiscard]] std::uint64_t history() noexcept;

}   // namespace drawpoint::simulation
