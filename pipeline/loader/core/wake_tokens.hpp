#pragma once

#include <atomic>
#include <climits>
#include <cstdint>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <drawpoint/instrumentation/detail/atomics.hpp>

#include "pipeline/loader/core/spin_pause.hpp"

namespace drawpoint {

struct FutexAtomics : RealAtomics {
    static constexpr int spins = 64;
    static void pause() noexcept { spin_pause(); }
    static void yield() noexcept { ::sched_yield(); }
    /// Sleeps until `wake` if the word still has this value. A signal ends it, too.
    static void sleep(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
        futex(word, FUTEX_WAIT_PRIVATE, value);
    }
    static void wake(std::atomic<std::uint32_t>& word, std::uint32_t most) noexcept {
        futex(word, FUTEX_WAKE_PRIVATE, most);
    }

private:
    static void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) noexcept {
        static_assert(sizeof word == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
        ::syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
    }
};

/// A counting semaphore on which idle workers sleep. Unlike std::counting_semaphore and std::atomic::wait() of
/// libstdc++ 12, it wakes as many threads as it was given tokens, not all of them, and yields the core only if asked.
/// Lock-free; any thread. What happened before a give() is visible to the threads that take one of its tokens.
template <class Atomics = FutexAtomics>
class BasicWakeTokens {
public:
    /// Lets `count` ≥ 1 take() return. A system call if somebody sleeps.
    void give(std::uint32_t count) noexcept {
        // Sequentially consistent, like a sleeper's entry and the kernel's look at the tokens before it lets it sleep:
        // either this sees the sleeper, or the kernel the tokens.
        tokens_.fetch_add(count, std::memory_order_seq_cst);
        if (sleepers_.load(std::memory_order_seq_cst) != 0)
            Atomics::wake(tokens_, count);
    }
    /// Takes a token: one that comes within about 1 µs (64 pauses), or while the core is left to others `yields` times,
    /// without sleeping.
    void take(int yields = 0) noexcept {
        for (int i = 0; i < Atomics::spins; ++i) {
            if (try_take())
                return;
            Atomics::pause();
        }
        for (; yields > 0; --yields) {
            if (try_take())
                return;
            Atomics::yield();
        }
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        while (!try_take())
            Atomics::sleep(tokens_, 0);   // returns at once if there are tokens by now
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }
    /// Lets every take(), of now and later, return: more threads than there can be.
    void give_all() noexcept {
        tokens_.fetch_add(1u << 16, std::memory_order_seq_cst);
        Atomics::wake(tokens_, INT_MAX);
    }

private:
    [[nodiscard]] bool try_take() noexcept {
        std::uint32_t left = tokens_.load(std::memory_order_relaxed);
        while (left != 0)
            if (tokens_.compare_exchange_weak(left, left - 1, std::memory_order_acquire, std::memory_order_relaxed))
                return true;
        return false;
    }

    typename Atomics::template atomic<std::uint32_t> tokens_{0}, sleepers_{0};
};
using WakeTokens = BasicWakeTokens<>;

}   // namespace drawpoint
