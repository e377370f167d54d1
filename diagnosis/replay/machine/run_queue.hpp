#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace drawpoint {

/// What a thread has had of a core, and what it is due. Times are of service, in 1024ths of a nanosecond of a whole
/// core.
struct Turn {
    static constexpr std::int64_t ns = 1024;

    std::int64_t slice = 0;      ///< that it asks for
    std::int64_t ran = 0;        ///< its service, comparable within its queue (the kernel's vruntime)
    std::int64_t deadline = 0;   ///< value of `ran` at which its slice ends
    /// Value of `ran` until which only a waking thread with a shorter slice takes its core.
    std::int64_t protected_until = 0;
    std::int64_t lag = 0;   ///< service it was due when it left its queue
    bool asleep = false;    ///< asleep, but in the queue until the others have caught up with it
};

/// The threads of one core, including the running one, and whose turn it is, as Linux decides from 6.12 on (EEVDF), for
/// threads of equal weight: of those that have had no more than the average, the one with the earliest deadline.
/// `turns` are by thread. Each call is O(threads).
class RunQueue {
public:
    using Thread = std::uint32_t;
    using Turns = std::span<Turn>;
    static constexpr Thread nobody = ~Thread{0};

    explicit RunQueue(std::int64_t tick_ns) noexcept : tick_{tick_ns * Turn::ns} {}

    [[nodiscard]] std::size_t size() const noexcept { return threads_.size(); }
    [[nodiscard]] std::span<const Thread> threads() const noexcept { return threads_; }

    /// Adds a thread with the lag it has. `moves`: it comes from another core, with the rest of its slice.
    void join(Turns turns, Thread thread, bool moves = false) {
        Turn& turn = turns[thread];
        const std::int64_t slice = moves ? turn.deadline - turn.ran : turn.slice;
        const auto others = static_cast<std::int64_t>(threads_.size());
        turn.ran = average(turns) - (others == 0 ? 0 : turn.lag * (others + 1) / others);
        turn.deadline = turn.ran + slice;
        threads_.push_back(thread);
    }
    void leave(Turns turns, Thread thread) {
        Turn& turn = turns[thread];
        const std::int64_t most = std::max(2 * turn.slice, tick_);
        turn.lag = std::clamp(average(turns) - turn.ran, -most, most);
        threads_.erase(std::ranges::find(threads_, thread));
        if (threads_.empty())
            empty_at_ = turn.ran;
    }
    /// Removes the thread, or marks it asleep if it has had more than the average.
    void sleep(Turns turns, Thread thread) {
        if (is_eligible(turns, thread))
            leave(turns, thread);
        else
            turns[thread].asleep = true;
    }
    /// `sched_yield`: gives up the rest of the slice as if it had run (Linux from 6.18 on). Has no effect if the thread
    /// is alone or has had more than the average.
    void yield(Turns turns, Thread thread) const noexcept {
        if (threads_.size() == 1 || !is_eligible(turns, thread))
            return;
        Turn& turn = turns[thread];
        turn.ran = std::max(turn.ran, turn.deadline);
        turn.deadline = turn.ran + turn.slice;
    }
    /// Wakes a thread that stayed in the queue.
    void wake(Turns turns, Thread thread) {
        turns[thread].asleep = false;
        if (!is_eligible(turns, thread))
            return;
        leave(turns, thread);
        turns[thread].lag = 0;
        join(turns, thread);
    }
    /// Renews the deadline of `running` if its slice is over, as a tick does. True: it may be the turn of another
    /// thread.
    bool look_at(Turns turns, Thread running) const noexcept {
        Turn& turn = turns[running];
        const bool over = turn.ran >= turn.deadline;
        if (over)
            turn.deadline = turn.ran + turn.slice;
        return threads_.size() > 1 && (over || turn.ran >= turn.protected_until);
    }
    /// The awake thread whose turn it is, or `nobody`. Sleeping threads with whom the others have caught up leave.
    /// `running` may go on, and with `protect` it does while it is protected.
    [[nodiscard]] Thread pick(Turns turns, Thread running, bool protect) {
        while (!threads_.empty()) {
            const Thread thread = best(turns, running, protect);
            if (!turns[thread].asleep)
                return thread;
            turns[thread].asleep = false;
            leave(turns, thread);
            turns[thread].lag = 0;
        }
        return nobody;
    }
    /// Puts a thread that loses the core behind others of the same deadline.
    void put_back(Thread thread) noexcept {
        const auto at = std::ranges::find(threads_, thread);
        std::rotate(at, at + 1, threads_.end());
    }
    /// Protects a thread that gets the core (`anew`), or shortens its protection because a thread with a shorter slice
    /// woke.
    void protect(Turns turns, Thread running, bool anew) const noexcept {
        std::int64_t shortest = turns[running].slice;
        for (const Thread thread : threads_)
            shortest = std::min(shortest, turns[thread].slice);
        Turn& turn = turns[running];
        turn.protected_until = std::min(anew ? turn.deadline : turn.protected_until, turn.ran + shortest);
    }

private:
    [[nodiscard]] Thread best(Turns turns, Thread running, bool protect) const noexcept {
        const std::int64_t first = turns[threads_.front()].ran, sum = sum_beyond(turns, first);
        const auto eligible = [&](Thread thread) {
            return (turns[thread].ran - first) * static_cast<std::int64_t>(threads_.size()) <= sum;
        };
        Thread best = running != nobody && eligible(running) ? running : nobody;
        if (best != nobody && protect && turns[best].ran < turns[best].protected_until)
            return best;
        for (const Thread thread : threads_)
            if (thread != running && eligible(thread) &&
                (best == nobody || turns[thread].deadline < turns[best].deadline ||
                 (best == running && turns[thread].deadline == turns[best].deadline)))
                best = thread;
        return best;
    }
    [[nodiscard]] std::int64_t sum_beyond(Turns turns, std::int64_t first) const noexcept {
        std::int64_t sum = 0;
        for (const Thread thread : threads_)
            sum += turns[thread].ran - first;
        return sum;
    }
    [[nodiscard]] std::int64_t average(Turns turns) const noexcept {
        if (threads_.empty())
            return empty_at_;
        const std::int64_t first = turns[threads_.front()].ran;
        return first + sum_beyond(turns, first) / static_cast<std::int64_t>(threads_.size());
    }
    [[nodiscard]] bool is_eligible(Turns turns, Thread thread) const noexcept {
        return sum_beyond(turns, turns[thread].ran) >= 0;
    }

    std::int64_t tick_;
    std::vector<Thread> threads_;
    std::int64_t empty_at_ = 0;   // `ran` of the last thread that left
};

}   // namespace drawpoint
