#pragma once

#include <cstdint>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace drawpoint {

/// How the system schedules a thread: Linux's `sched_attr`, first version. glibc has it and its two system calls from 2.41 on;
/// the kernel's header collides with <sched.h>.
struct ThreadScheduling {
    std::uint32_t size = 0, policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t slice_ns =
        0;   ///< of SCHED_OTHER and SCHED_BATCH from Linux 6.12 on; asked for as 0: the system's own
    std::uint64_t deadline_ns = 0, period_ns = 0;
};
static_assert(sizeof(ThreadScheduling) == 48);

/// The calling thread's, if it is a usual one; else `size` is 0. Not by pthread_getschedparam, which answers from a cache.
inline ThreadScheduling usual_scheduling() noexcept {
    ThreadScheduling own;
    const bool known = ::syscall(SYS_sched_getattr, 0, &own, sizeof own, 0u) == 0;
    return known && own.policy == SCHED_OTHER ? own : ThreadScheduling{};
}

/// False: the system refuses.
inline bool schedule_thread(const ThreadScheduling& as) noexcept {
    return ::syscall(SYS_sched_setattr, 0, &as, 0u) == 0;
}

}   // namespace drawpoint
