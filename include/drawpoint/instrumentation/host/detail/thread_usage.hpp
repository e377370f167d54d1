#pragma once

#include <pthread.h>
#include <time.h>

#include <cstdint>

namespace drawpoint {

/// Counters of the calling thread: its CPU time and its time waiting for a core. Only differences between two readings
/// have a meaning. Use by one thread at a time. Never allocates, never throws.
class ThreadUsage {
public:
    ThreadUsage() noexcept = default;
    ~ThreadUsage();
    ThreadUsage(const ThreadUsage&) = delete;
    ThreadUsage& operator=(const ThreadUsage&) = delete;

    /// CPU time of the thread, in nanoseconds. Takes about 0.4 µs.
    [[nodiscard]] static std::int64_t cpu_ns() noexcept {
        timespec time{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    }

    /// Time that the thread was runnable but waited for a core, in nanoseconds; `no_stamp` where the system does not
    /// count that. Takes about 0.7 µs; a thread's first call opens a file of /proc, about 10 µs.
    [[nodiscard]] std::int64_t run_queue_ns() noexcept {
        if (!is_attached())
            attach();
        return descriptor_ >= 0 ? read_run_queue() : absent;
    }
    /// Whether the last run_queue_ns() was called by the calling thread.
    [[nodiscard]] bool is_attached() const noexcept {
        // A new thread may reuse a dead thread's handle; the clock differs, since it encodes the thread's id.
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
