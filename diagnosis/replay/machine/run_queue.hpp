#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "diagnosis/replay/machine/linux_scheduler.hpp"

namespace drawpoint {

/// What a thread has had of a core, and is to have. Times are of service, in 1024ths of a nanosecond of a whole core.
struct Turn {
    static constexpr std::int64_t ns = 1024;

    std::int64_t slice = 0;             ///< that it asks for
    std::int64_t ran = 0;               ///< its service, set against that of the others of its queue
    std::int64_t deadline = 0;          ///< of its slice
    std::int64_t protected_until = 0;   ///< before that it loses its core only to one with a shorter slice that wakes
    std::int64_t lag = 0;               ///< by how much it had had too little when it left its queue
    bool asleep = false;                ///< and in the queue until what it has had too much is made up for
};

/// The threads of one core, the one that has it among them, and whose turn it is: as Linux decides from 6.12 on (EEVDF), all of
/// one weight. Of those that have not had more than the others on average, the one with the earliest deadline. `turns` are by
/// thread. Each call is O(threads).
class RunQueue {
public:
    using Thread = std::uint32_t;
    using Turns = std::span<Turn>;
    static constexpr Thread nobody = ~Thread{0};
    static constexpr std::int64_t tick = linux_scheduler::tick_ns * Turn::ns;

    [[nodiscard]] std::size_t size() const noexcept { return threads_.size(); }
    [[nodiscard]] std::span<const Thread> threads() const noexcept { return threads_; }

    /// With the lag it has; `moves`: from another core, with what was left of its slice.
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
        const std::int64_t most = std::max(2 * turn.slice, tick);
        turn.lag = std::clamp(average(turns) - turn.ran, -most, most);
        threads_.erase(std::ranges::find(threads_, thread));
        if (threads_.empty())
            empty_at_ = turn.ran;
    }
    /// One that has had too much stays.
    void sleep(Turns turns, Thread thread) {
        if (is_eligible(turns, thread))
            leave(turns, thread);
        else
            turns[thread].asleep = true;
    }
    /// `sched_yield`: gives up the rest of its slice, as if it had run (Linux from 6.18 on); alone, for nobody.
    void yield(Turns turns, Thread thread) const noexcept {
        if (threads_.size() == 1)
            return;
        Turn& turn = turns[thread];
        turn.ran = std::max(turn.ran, turn.deadline);
        turn.deadline = turn.ran + turn.slice;
    }
    /// Of one that stayed.
    void wake(Turns turns, Thread thread) {
        turns[thread].asleep = false;
        if (!is_eligible(turns, thread))
            return;
        leave(turns, thread);
        turns[thread].lag = 0;
        join(turns, thread);
    }
    /// Takes note of what `running` has got by now, as a tick does. True: others may have their turn.
    bool look_at(Turns turns, Thread running) const noexcept {
        Turn& turn = turns[running];
        const bool over = turn.ran >= turn.deadline;
        if (over)
            turn.deadline = turn.ran + turn.slice;
        return threads_.size() > 1 && (over || turn.ran >= turn.protected_until);
    }
    /// Whose turn it is: one that is awake; those that have slept enough leave. `running`: may go on, and with `protect` does
    /// while it may. `nobody`: there is none.
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
    /// One that loses the core: of the same deadlines, its is the last.
    void put_back(Thread thread) noexcept {
        const auto at = std::ranges::find(threads_, thread);
        std::rotate(at, at + 1, threads_.end());
    }
    /// Of one that gets the core, or beside which one with a shorter slice has woken.
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

    std::vector<Thread> threads_;
    std::int64_t empty_at_ = 0;   // `ran` of the last that left
};

}   // namespace drawpoint
