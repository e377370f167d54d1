#pragma once

#include <cstddef>
#include <cstdint>

#include <drawpoint/instrumentation/detail/atomics.hpp>
#include <drawpoint/pipeline/loader/machine/detail/loader_machine.hpp>

namespace drawpoint {

/// The atomic word through which slots come back, from any thread. Bit 63: the loop waits; bits 62 … 56: a threshold;
/// bits 55 … 0: slots given back and not yet taken up. The threshold is the number of slots after which a sleeping
/// worker is woken, or says that nobody sleeps, or that the loader is closed. Giving back is one exchange of the word;
/// only the give-back that wakes a worker, or comes after the loader's end, has more to do. Memory orders are as weak
/// as can be (tests/model): all decisions are about this one word, and only a slot's memory is handed on with it.
template <class Atomics = RealAtomics>
class BasicGiveBackGate {
public:
    /// What the thread that gave a slot back must do next.
    enum class Then : std::uint8_t { nobody_waits, wake_worker, note_closed };
    struct TakenUp {
        std::uint64_t slots = 0;   ///< bit set
        LoaderMachine::Gate state = LoaderMachine::Gate::off;
        std::size_t left = 0;   ///< slots until the gate fires
    };

    // Any thread.
    /// Gives the slot back. False if a worker may have to be woken or the loader is closed: then nothing has changed.
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
            if (word_.compare_exchange_weak(word, next, std::memory_order_release, std::memory_order_relaxed))
                return true;
        }
    }
    /// Gives the slot back in every case.
    [[nodiscard]] Then give(std::uint32_t slot) noexcept {
        std::uint64_t word = word_.load(std::memory_order_relaxed), next;
        do {
            next = word + bit(slot);
            if (threshold(word) < closed)
                // Setting the threshold to `nobody` decides to wake one worker; the machine counts it at its next turn.
                next = threshold(word) == 1 || (word & loop_waits) != 0 ? next | nobody << shift : next - one;
        } while (!word_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_relaxed));
        if (threshold(word) == closed)
            return Then::note_closed;
        return threshold(word) < closed && threshold(next) == nobody ? Then::wake_worker : Then::nobody_waits;
    }
    [[nodiscard]] bool has_slots() const noexcept { return (word_.load(std::memory_order_relaxed) & all_slots) != 0; }

    // The loop.
    void announce_wait() noexcept { word_.fetch_or(loop_waits, std::memory_order_relaxed); }
    void end_wait() noexcept { word_.fetch_and(~loop_waits, std::memory_order_relaxed); }

    // The thread that turns, under the loader's mutex.
    [[nodiscard]] bool is_armed() const noexcept { return armed_; }
    /// Takes the slots that are back. If the gate was counting, it begins again from `threshold`.
    [[nodiscard]] TakenUp take_up(std::size_t threshold) noexcept;
    /// Arms the gate to wake a worker after `threshold` slots, unless it already does after fewer. False: a slot is
    /// back already, and nothing has changed.
    [[nodiscard]] bool arm(std::size_t threshold) noexcept;
    /// Nobody sleeps any more. True: the gate has fired in the meantime.
    [[nodiscard]] bool disarm() noexcept;
    /// Takes the slots that are back, where nobody ever sleeps.
    [[nodiscard]] std::uint64_t take() noexcept {
        return word_.fetch_and(~all_slots, std::memory_order_acquire) & all_slots;
    }

    // The end.
    [[nodiscard]] std::uint64_t word() const noexcept { return word_.load(std::memory_order_relaxed); }
    /// The slots of `out` that are not back according to `word`.
    [[nodiscard]] static std::uint64_t still_out(std::uint64_t word, std::uint64_t out) noexcept { return out & ~word; }
    /// Closes the gate if its word is still `word`; else sets `word` to what it is now.
    [[nodiscard]] bool close(std::uint64_t& word) noexcept {
        return word_.compare_exchange_weak(word, (word & all_slots) | closed << shift, std::memory_order_acq_rel,
                                           std::memory_order_relaxed);
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

    typename Atomics::template atomic<std::uint64_t> word_{nobody << shift};
    bool armed_ = false;   // for the thread that turns: the threshold will wake a worker, or has
};

template <class Atomics>
auto BasicGiveBackGate<Atomics>::take_up(std::size_t again_at) noexcept -> TakenUp {
    std::uint64_t word = word_.load(std::memory_order_relaxed), next = word;
    while ((word & all_slots) != 0) {
        next = word & ~all_slots;
        if (armed_ && threshold(word) != nobody)
            next = with_threshold(next, again_at);   // the slots taken up here have counted it down
        if (word_.compare_exchange_weak(word, next, std::memory_order_acquire, std::memory_order_relaxed))
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

template <class Atomics>
bool BasicGiveBackGate<Atomics>::arm(std::size_t at) noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    do {
        if ((word & all_slots) != 0)
            return false;
        if (armed_ && threshold(word) <= at)
            return true;
    } while (!word_.compare_exchange_weak(word, with_threshold(word, at), std::memory_order_relaxed,
                                          std::memory_order_relaxed));
    armed_ = true;
    return true;
}

template <class Atomics>
bool BasicGiveBackGate<Atomics>::disarm() noexcept {
    armed_ = false;
    return threshold(word_.fetch_or(nobody << shift, std::memory_order_relaxed)) == nobody;
}
using GiveBackGate = BasicGiveBackGate<>;

}   // namespace drawpoint
