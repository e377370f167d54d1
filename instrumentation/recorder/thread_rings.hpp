#pragma once

#include <pthread.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "instrumentation/ledger/definitions.hpp"
#include "instrumentation/recorder/ring.hpp"

namespace drawpoint {

/// What a thread needs to record operators: its ring, and state that only the thread itself changes.
struct ThreadRing {
    ThreadRing(std::uint32_t records, std::uint32_t which, pthread_t owner)
        : ring{records}, number{which}, handle{owner} {}

    /// What `Recorder::begin_operator` returns: the ring's number, then a serial number that is never 0.
    [[nodiscard]] std::uint32_t next_ticket() noexcept {
        serial = serial % ((1u << serial_bits) - 1) + 1;
        return number << serial_bits | serial;
    }
    [[nodiscard]] static constexpr std::uint32_t number_of(std::uint32_t ticket) noexcept {
        return ticket >> serial_bits;
    }
    static constexpr unsigned serial_bits = 23;

    Ring ring;
    const std::uint32_t number;   ///< from 0, in the order of the threads' first calls
    const pthread_t handle;       ///< of the thread that it belongs to, or belonged to last
    std::atomic<clockid_t> clock = 0;
    std::uint32_t thread = nothing;   ///< position in the definitions
    std::uint32_t serial = 0;         ///< of the last operator begun
    bool fresh = true;                ///< this thread has begun nothing yet
};

/// Finds the calling thread's ring without a lock, a system call or thread-local storage. A thread whose handle was a
/// dead thread's takes over that thread's ring and starts afresh. Any thread.
class ThreadRings {
public:
    static constexpr std::uint32_t most = 512;
    static_assert(most <= 1u << (32 - ThreadRing::serial_bits));

    /// `records`: of each ring, a number that `Ring` accepts.
    ThreadRings(std::uint32_t records, DefinitionTable&);

    /// The calling thread's ring, made at its first call. Null, and counted, if there are too many threads or memory
    /// runs out.
    [[nodiscard]] ThreadRing* mine() noexcept {
        const pthread_t self = ::pthread_self();
        // A thread's handle may have been a dead thread's. The id of the CPU-time clock tells them apart: it is made of
        // the thread's id, and getting it costs no system call.
        clockid_t clock{};
        ::pthread_getcpuclockid(self, &clock);
        for (std::size_t at = slot_of(self);; at = (at + 1) % slots) {
            ThreadRing* const ring = slots_[at].load(std::memory_order_acquire);
            if (ring == nullptr)
                return make(self, clock, at);
            if (ring->handle == self) {
                if (ring->clock.load(std::memory_order_relaxed) == clock) [[likely]]
                    return ring;
                return take_over(*ring, clock);
            }
        }
    }

    /// The ring with this number if it is the calling thread's, else null.
    [[nodiscard]] ThreadRing* mine(std::uint32_t number) const noexcept {
        ThreadRing* const ring = by_number_[number].load(std::memory_order_acquire);
        return ring != nullptr && ring->handle == ::pthread_self() ? ring : nullptr;
    }

    /// All rings so far, by number.
    void list(std::vector<ThreadRing*>& into) const;
    /// Closes all rings, and those made later.
    void close() noexcept;
    /// Records dropped by full rings so far.
    [[nodiscard]] std::uint64_t dropped() const noexcept;
    /// Records dropped so far because their thread has no ring.
    [[nodiscard]] std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

private:
    static constexpr std::size_t slots = std::size_t{2} * most;   // never full, so that every search ends

    static std::size_t slot_of(pthread_t self) noexcept {
        const auto bits = static_cast<std::uint64_t>(self) * 0x9e37'79b9'7f4a'7c15u;
        return static_cast<std::size_t>(bits >> 32) % slots;
    }
    ThreadRing* make(pthread_t self, clockid_t clock, std::size_t at) noexcept;
    ThreadRing* take_over(ThreadRing&, clockid_t) noexcept;

    const std::uint32_t records_;
    DefinitionTable* definitions_;
    std::array<std::atomic<ThreadRing*>, slots> slots_{};
    std::array<std::atomic<ThreadRing*>, most> by_number_{};
    std::atomic<std::uint64_t> refused_ = 0;
    mutable std::mutex mutex_;   // of the members below, and of adding to the tables
    std::vector<std::unique_ptr<ThreadRing>> rings_;
    bool closed_ = false;
};

}   // namespace drawpoint
