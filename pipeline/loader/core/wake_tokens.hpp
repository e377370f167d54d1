#pragma once

#include <atomic>
#include <climits>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace drawpoint {

/// A counting semaphore on which idle workers sleep. Unlike std::counting_semaphore and std::atomic::wait() of
/// libstdc++ 12, it wakes as many threads as it was given tokens, not all of them, and never spins. Lock-free; any
/// thread. What happened before a give() is visible to the threads that take one of its tokens.
class WakeTokens {
public:
    /// Lets `count` ≥ 1 take() return. One system call.
    void give(std::uint32_t count) noexcept {
        tokens_.fetch_add(count, std::memory_order_release);
        futex(FUTEX_WAKE_PRIVATE, count);
    }
    /// Sleeps until there is a token, and takes it.
    void take() noexcept {
        for (;;) {
            std::uint32_t left = tokens_.load(std::memory_order_acquire);
            while (left != 0)
                if (tokens_.compare_exchange_weak(left, left - 1, std::memory_order_acquire))
                    return;
            futex(FUTEX_WAIT_PRIVATE, 0);   // returns at once if there are tokens by now; signals end it too
        }
    }
    /// Lets every take(), of now and later, return: more threads than there can be.
    void give_all() noexcept {
        tokens_.fetch_add(1u << 16, std::memory_order_release);
        futex(FUTEX_WAKE_PRIVATE, INT_MAX);
    }

private:
    void futex(int operation, std::uint32_t value) noexcept {
        static_assert(sizeof tokens_ == sizeof(std::uint32_t) && decltype(tokens_)::is_always_lock_free);
        ::syscall(SYS_futex, &tokens_, operation, value, nullptr, nullptr, 0);
    }

    std::atomic<std::uint32_t> tokens_{0};
};

}   // namespace drawpoint
