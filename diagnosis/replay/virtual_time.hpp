#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

namespace drawpoint {

/// What `n` computing threads get done together, in whole cores: all of them alone, `efficiency` each once all `cores`
/// compute.
[[nodiscard]] inline double capacity_of(double n, double cores, double efficiency) noexcept {
    const double busy = std::min(n, cores);
    if (cores <= 1 || busy <= 1)
        return busy;
    return 1 + std::max(cores * efficiency - 1, 0.0) * (busy - 1) / (cores - 1);
}

/// A clock that jumps from event to event: timers, and cores that are shared evenly by whoever computes. Those have
/// all received the same service since they began together, so one sum of it stands for all of them: a change of their
/// number is O(1), the next to end is the top of a heap. Integers only; events of one moment come in the order they
/// were asked for, timers first.
class VirtualTime {
public:
    using Entity = std::uint32_t;

    /// `cores` 0: nobody waits for one.
    VirtualTime(double cores, double efficiency, std::size_t entities)
        : cores_{cores}, efficiency_{efficiency}, pending_(entities, 0), threads_(entities, 0) {
        timers_.reserve(entities * 2);
        computing_.reserve(entities);
    }

    [[nodiscard]] std::int64_t now_ns() const noexcept { return now_; }

    /// Lets `ns` pass for the entity; in place of the timer it waits for, if any.
    void wait(Entity entity, std::int64_t ns) {
        pending_[entity] = ++sequence_;
        push(timers_, {now_ + ns, sequence_, entity});
    }

    /// `cpu_ns` of a core, less than `most_cpu_ns`, spread over `threads` ≥ 1.
    void compute(Entity entity, std::int64_t cpu_ns, double threads = 1) {
        settle();
        if (served_ > most_cpu_ns * one)
            rebase();
        const std::int64_t each = threads == 1 ? cpu_ns : std::llround(static_cast<double>(cpu_ns) / threads);
        push(computing_, {served_ + each * one, ++sequence_, entity});
        threads_[entity] = threads;
        running_ += threads;
        reckon();
    }

    /// Time goes on to the next event; whose it is. Nothing: there is none any more.
    std::optional<Entity> next() {
        for (;;) {
            if (now_ > most_ns)   // so that no sum below runs over
                throw std::invalid_argument{"replay: the run would take more than 73 years"};
            const bool timer = !timers_.empty() && (computing_.empty() || timers_.front().key <= next_served_at_);
            if (!timer && computing_.empty())
                return std::nullopt;
            if (timer) {
                const Event event = pop(timers_);
                if (pending_[event.entity] != event.sequence)
                    continue;
                pending_[event.entity] = 0;
                now_ = event.key;
                return event.entity;
            }
            now_ = next_served_at_;
            settle();
            const Event event = pop(computing_);
            running_ -= threads_[event.entity];
            if (computing_.empty())
                served_ = 0, running_ = 0;
            reckon();
            return event.entity;
        }
    }

    static constexpr std::int64_t most_cpu_ns = std::int64_t{1} << 41;   // 36 minutes

private:
    static constexpr std::int64_t most_ns = std::int64_t{1} << 61;
    static constexpr std::int64_t one = 1 << 20;   // of service, a nanosecond of a whole core

    struct Event {
        std::int64_t key;
        std::uint32_t sequence;
        Entity entity;
        [[nodiscard]] bool before(const Event& other) const noexcept {
            return key != other.key ? key < other.key : sequence < other.sequence;
        }
    };

    static void push(std::vector<Event>& heap, Event event) {
        heap.push_back(event);
        std::size_t at = heap.size() - 1;
        while (at != 0 && event.before(heap[(at - 1) / 2])) {
            heap[at] = heap[(at - 1) / 2];
            at = (at - 1) / 2;
        }
        heap[at] = event;
    }
    static Event pop(std::vector<Event>& heap) {
        const Event top = heap.front(), last = heap.back();
        heap.pop_back();
        std::size_t at = 0;
        for (std::size_t child; (child = 2 * at + 1) < heap.size(); at = child) {
            child += child + 1 < heap.size() && heap[child + 1].before(heap[child]);
            if (!heap[child].before(last))
                break;
            heap[at] = heap[child];
        }
        if (!heap.empty())
            heap[at] = last;
        return top;
    }

    void rebase() noexcept {   // the order stays
        for (Event& event : computing_)
            event.key -= served_;
        served_ = 0;
    }
    void settle() noexcept {
        served_ += (now_ - settled_at_) * rate_;
        settled_at_ = now_;
    }
    void reckon() noexcept {
        if (computing_.empty())
            return void(rate_ = 0);
        if (running_ != rate_of_) {
            rate_of_ = running_;
            const double share = cores_ == 0 ? 1 : std::min(capacity_of(running_, cores_, efficiency_) / running_, 1.0);
            shared_rate_ = std::max<std::int64_t>(std::llround(share * static_cast<double>(one)), 1);
        }
        rate_ = shared_rate_;
        const std::int64_t left = std::max<std::int64_t>(computing_.front().key - served_, 0);
        next_served_at_ = now_ + (rate_ == one ? (left + one - 1) / one : (left + rate_ - 1) / rate_);
    }

    double cores_, efficiency_;
    std::int64_t now_ = 0;
    std::uint32_t sequence_ = 0;
    std::vector<std::uint32_t> pending_;   // of each entity: its timer's sequence; 0: none
    std::vector<double> threads_;          // of each that computes
    std::vector<Event> timers_, computing_;
    std::int64_t served_ = 0, settled_at_ = 0, next_served_at_ = 0, rate_ = 0, shared_rate_ = one;
    double running_ = 0, rate_of_ = 0;   // threads that compute; those shared_rate_ is of
};

/// A length that some ledger tells of as one that a demand may have.
[[nodiscard]] constexpr std::int64_t bounded_ns(std::int64_t ns) noexcept {
    return std::clamp<std::int64_t>(ns, 0, VirtualTime::most_cpu_ns - 1);
}

}   // namespace drawpoint
