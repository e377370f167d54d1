#pragma once

#include <pthread.h>
#include <time.h>

#include <cstdint>

namespace drawpoint {

/// What the calling thread has used of the machine. Differences mean something, totals do not. One thread at a time.
/// Never allocates, never throws.
class ThreadUsage {
public:
    ThreadUsage() noexcept = default;
    ~ThreadUsage();
    ThreadUsage(const ThreadUsage&) = delete;
    ThreadUsage& operator=(const ThreadUsage&) = delete;

    /// What it spent computing, in nanoseconds. About 0.4 µs.
    [[nodiscard]] static std::int64_t cpu_ns() noexcept {
        timespec time{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    }

    /// What it spent waiting for a core, in nanoseconds; `no_stamp` where the system does not count that. About 0.7 µs; the
    /// first call of a thread opens a file of /proc, some 10 µs.
    [[nodiscard]] std::int64_t run_queue_ns() noexcept {
        if (!is_attached())
            attach();
        return descriptor_ >= 0 ? read_run_queue() : absent;
    }
    /// Whether the calling thread is the one whose run_queue_ns() was read last.
    [[nodiscard]] bool is_attached() const noexcept {
        // A handle may have been a dead thread's: the clock, which is made of the thread's id, tells them apart.
        return attached_ && ::pthread_equal(thread_, ::pthread_self()) != 0 && clock_ == clock_of_this_thread();
    }

private:
    static constexpr std::int64_t absent = INT64_MIN;   // no_stamp

    static clockid_t clock_of_this_thread() noexcept {
        clockid_t clock{};
        ::pthread_getcpuclockid(::pthread_self(), &clock);
        return clock;
    }
    void attach() noexcept;
    [[nodiscard]] std::int64_t read_run_queue() const noexcept;

    int descriptor_ = -1;
    bool attached_ = false;
    pthread_t thread_{};
    clockid_t clock_{};
};

}   // namespace drawpoint
