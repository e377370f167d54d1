#pragma once

#include <cstdint>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace drawpoint {

/// Linux's `sched_attr`, first version: how the system schedules a thread. Declared here because glibc has it only from
/// 2.41 on, and the kernel's header conflicts with <sched.h>.
struct ThreadScheduling {
    std::uint32_t size = 0, policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    /// Time slice under SCHED_OTHER and SCHED_BATCH, from Linux 6.12 on; setting 0 means the system's default.
    std::uint64_t slice_ns = 0;
    std::uint64_t deadline_ns = 0, period_ns = 0;
};
static_assert(sizeof(ThreadScheduling) == 48);

/// The calling thread's scheduling if that is SCHED_OTHER; else `size` is 0. pthread_getschedparam would answer from a
/// cache.
inline ThreadScheduling usual_scheduling() noexcept {
    ThreadScheduling own;
    const bool known = ::syscall(SYS_sched_getattr, 0, &own, sizeof own, 0u) == 0;
    return known && own.policy == SCHED_OTHER ? own : ThreadScheduling{};
}

/// Sets the calling thread's scheduling. False: the system refuses.
inline bool schedule_thread(const ThreadScheduling& as) noexcept {
    return ::syscall(SYS_sched_setattr, 0, &as, 0u) == 0;
}

}   // namespace drawpoint
