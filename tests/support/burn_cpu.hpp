#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

#include <unistd.h>

namespace drawpoint::test {

[[nodiscard]] inline std::int64_t thread_cpu_ns() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Computes until the calling thread has used this much CPU time, however busy the machine is.
inline void burn_cpu(std::chrono::nanoseconds time) {
    const std::int64_t until = thread_cpu_ns() + time.count();
    while (thread_cpu_ns() < until) {
    }
}

/// Whether the system reports how long a thread waited for a core.
[[nodiscard]] inline bool counts_run_queue() { return ::access("/proc/thread-self/schedstat", R_OK) == 0; }

}   // namespace drawpoint::test
