#pragma once

#include <atomic>
#include <climits>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pipeline/loader/core/spin_pause.hpp"

namespace drawpoint {

/// A counting semaphore on which idle workers sleep. Unlike std::counting_semaphore and std::atomic::wait() of
/// libstdc++ 12, it wakes as many threads as it was given tokens, not all of them, and never yields the core.
/// Lock-free; any thread. What happened before a give() is visible to the threads that take one of its tokens.
class WakeTokens {
public:
    /// Lets `count` ≥ 1 take() return. A system call if somebody sleeps.
    void give(std::uint32_t count) noexcept {
        // Sequentially consistent, like what a sleeper does: either this sees the sleeper, or the sleeper the tokens.
        tokens_.fetch_add(count);
        if (sleepers_.load() != 0)
            futex(FUTEX_WAKE_PRIVATE, count);
    }
    /// Takes a token: one that comes within about 1 µs (64 pauses) without sleeping.
    void take() noexcept {
        for (int i = 0; i < spins; ++i) {
            if (try_take())
                return;
            spin_pause();
        }
        sleepers_.fetch_add(1);
        while (!try_take())
            futex(FUTEX_WAIT_PRIVATE, 0);   // returns at once if there are tokens by now; signals end it too
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }
    /// Lets every take(), of now and later, return: more threads than there can be.
    void give_all() noexcept {
        tokens_.fetch_add(1u << 16);
        futex(FUTEX_WAKE_PRIVATE, INT_MAX);
    }

private:
    static constexpr int spins = 64;

    [[nodiscard]] bool try_take() noexcept {
        std::uint32_t left = tokens_.load();
        while (left != 0)
            if (tokens_.compare_exchange_weak(left, left - 1))
                return true;
        return false;
    }
    void futex(int operation, std::uint32_t value) noexcept {
        static_assert(sizeof tokens_ == sizeof(std::uint32_t) && decltype(tokens_)::is_always_lock_free);
        ::syscall(SYS_futex, &tokens_, operation, value, nullptr, nullptr, 0);
    }

    std::atomic<std::uint32_t> tokens_{0}, sleepers_{0};
};

}   // namespace drawpoint
