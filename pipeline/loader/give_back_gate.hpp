#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <drawpoint/pipeline/loader/machine/loader_machine.hpp>

namespace drawpoint {

/// The word through which slots come back, from any thread. Bit 63: the loop waits; 62 … 56: a threshold; 55 … 0: slots given
/// back and not yet taken up. The threshold says after how many more slots a sleeping worker wants to be woken, that nobody
/// sleeps, or that the loader is closed. Giving back is one exchange of this word, and only the one that wakes somebody, or
/// comes after the end, has more to do.
class GiveBackGate {
public:
    /// What the thread that gave a slot back has to do.
    enum class Then : std::uint8_t { nobody_waits, wake_worker, note_closed };
    struct TakenUp {
        std::uint64_t slots = 0;   ///< a bit each
        LoaderMachine::Gate state = LoaderMachine::Gate::off;
        std::size_t left = 0;   ///< slots until it fires
    };

    // Any thread.
    /// Gives the slot back, unless somebody may have to be woken or the loader is closed: then false, and nothing happened.
    [[nodiscard]] bool give_quietly(std::uint32_t slot) noexcept {
        std::uint64_t word = word_.load(std::memory_order_relaxed);
        for (;;) {
            const std::uint64_t left = threshold(word);
            std::uint64_t next = word + bit(slot);
            if (left != nobody) {
                if (left == closed || left == 1 || (word & loop_waits) != 0)
                    return false;
                next -= one;
            }
            if (word_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_relaxed))
                return true;
        }
    }
    [[nodiscard]] Then give(std::uint32_t slot) noexcept {
        std::uint64_t word = word_.load(std::memory_order_relaxed), next;
        do {
            next = word + bit(slot);
            if (threshold(word) < closed)
                // Whoever makes the threshold `nobody` has decided to wake one worker; the machine counts it at its next turn.
                next = threshold(word) == 1 || (word & loop_waits) != 0 ? next | nobody << shift : next - one;
        } while (!word_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_relaxed));
        if (threshold(word) == closed)
            return Then::note_closed;
        return threshold(word) < closed && threshold(next) == nobody ? Then::wake_worker : Then::nobody_waits;
    }
    [[nodiscard]] bool has_slots() const noexcept { return (word_.load(std::memory_order_acquire) & all_slots) != 0; }

    // The loop.
    void announce_wait() noexcept { word_.fetch_or(loop_waits, std::memory_order_acq_rel); }
    void end_wait() noexcept { word_.fetch_and(~loop_waits, std::memory_order_acq_rel); }

    // Whoever decides, one thread at a time.
    [[nodiscard]] bool is_armed() const noexcept { return armed_; }
    /// Takes the slots that are back. A gate that counts counts anew from `threshold` then.
    [[nodiscard]] TakenUp take_up(std::size_t threshold) noexcept;
    /// Wakes a worker after so many slots, if it does not after fewer already. False: a slot is back.
    [[nodiscard]] bool arm(std::size_t threshold) noexcept;
    /// Nobody sleeps any more. True: it has fired meanwhile.
    [[nodiscard]] bool disarm() noexcept;
    /// Takes the slots that are back, where nobody ever sleeps.
    [[nodiscard]] std::uint64_t take() noexcept {
        return word_.fetch_and(~all_slots, std::memory_order_acq_rel) & all_slots;
    }

    // The end.
    [[nodiscard]] std::uint64_t word() const noexcept { return word_.load(std::memory_order_acquire); }
    /// Slots among `out` that were not back when the word was so.
    [[nodiscard]] static std::uint64_t still_out(std::uint64_t word, std::uint64_t out) noexcept { return out & ~word; }
    /// Closes the gate if the word is still so; else the word as it is now.
    [[nodiscard]] bool close(std::uint64_t& word) noexcept {
        return word_.compare_exchange_weak(word, (word & all_slots) | closed << shift, std::memory_order_acq_rel,
                                           std::memory_order_acquire);
    }

private:
    static constexpr std::uint64_t shift = 56, one = std::uint64_t{1} << shift, all_slots = one - 1;
    static constexpr std::uint64_t loop_waits = std::uint64_t{1} << 63;
    static constexpr std::uint64_t nobody = 127, closed = 126;   // thresholds

    [[nodiscard]] static constexpr std::uint64_t bit(std::uint32_t slot) noexcept { return std::uint64_t{1} << slot; }
    [[nodiscard]] static constexpr std::uint64_t threshold(std::uint64_t word) noexcept {
        return word >> shift & nobody;
    }
    [[nodiscard]] static constexpr std::uint64_t with_threshold(std::uint64_t word, std::uint64_t threshold) noexcept {
        return (word & ~(nobody << shift)) | threshold << shift;
    }

    std::atomic<std::uint64_t> word_{nobody << shift};
    bool armed_ = false;   // of whoever decides: the threshold wakes a worker, or has
};

inline GiveBackGate::TakenUp GiveBackGate::take_up(std::size_t again_at) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire), next = word;
    while ((word & all_slots) != 0) {
        next = word & ~all_slots;
        if (armed_ && threshold(word) != nobody)
            next = with_threshold(next, again_at);   // counted down by what is taken up here
        if (word_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_acquire))
            break;
    }
    TakenUp taken{.slots = word & all_slots};
    if (armed_ && threshold(word) == nobody) {
        taken.state = LoaderMachine::Gate::fired;
        armed_ = false;
    } else if (armed_) {
        taken.state = LoaderMachine::Gate::counting;
        taken.left = threshold(taken.slots != 0 ? next : word);
    }
    return taken;
}

inline bool GiveBackGate::arm(std::size_t at) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    do {
        if ((word & all_slots) != 0)
            return false;
        if (armed_ && threshold(word) <= at)
            return true;
    } while (!word_.compare_exchange_weak(word, with_threshold(word, at), std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    armed_ = true;
    return true;
}

inline bool GiveBackGate::disarm() noexcept {
    armed_ = false;
    return threshold(word_.fetch_or(nobody << shift, std::memory_order_acq_rel)) == nobody;
}

}   // namespace drawpoint
