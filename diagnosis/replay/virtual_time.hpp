#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
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

/// A clock that jumps from event to event: timers, and cores with a queue each, as Linux runs threads. A thread keeps its core
/// until it waits or, if others queue there, its slice ends. One that wakes goes back to the core it had; where that is busy,
/// to another that is idle only as far as the kernel looks for one (less, the busier the cores are: its SIS_UTIL); else it
/// queues. A core that falls idle takes a queued thread from another's queue, unless that ran just now. So cores can be idle
/// while threads wait, as they are in reality. Cores that compute all have the same speed, so one sum of service stands for
/// all. Integers only; events of one moment come in the order they were asked for, timers first.
class VirtualTime {
public:
    using Entity = std::uint32_t;
    static constexpr Entity nobody = ~Entity{0};

    /// `cores` 0: nobody waits for one. `prompt`: runs at once when it wakes, as it has a short slice.
    VirtualTime(double cores, double efficiency, std::size_t entities, Entity prompt = nobody)
        : cores_{cores}, efficiency_{efficiency}, prompt_{prompt}, pending_(entities, 0), jobs_(entities) {
        timers_.reserve(entities * 2);
        computing_.reserve(entities * 2);
        core_.resize(cores == 0 ? 0 : static_cast<std::size_t>(std::max(std::ceil(cores - 1e-9), 1.0)));
        for (Entity entity = 0; entity < entities; ++entity)
            jobs_[entity].owner = entity;
        if (!core_.empty())
            for (std::size_t job = 0; job < entities; ++job)
                jobs_[job].core = static_cast<std::uint32_t>(job % core_.size());
    }

    [[nodiscard]] std::int64_t now_ns() const noexcept { return now_; }

    /// Lets `ns` pass for the entity; in place of the timer it waits for, if any.
    void wait(Entity entity, std::int64_t ns) {
        pending_[entity] = ++sequence_;
        push(timers_, {now_ + ns, sequence_, entity});
    }

    /// `cpu_ns` of a core, less than `most_cpu_ns`, spread over `threads` ≥ 1, which begin together.
    void compute(Entity entity, std::int64_t cpu_ns, double threads = 1) {
        settle();
        if (served_ > most_cpu_ns * one)
            rebase();
        const auto all = static_cast<std::size_t>(std::ceil(threads));
        jobs_[entity].outstanding = static_cast<std::uint32_t>(all);
        const std::int64_t each = all == 1 ? cpu_ns : std::llround(static_cast<double>(cpu_ns) / threads);
        const std::size_t first_helper = pending_.size();
        while (jobs_.size() < first_helper + all - 1) {
            const std::size_t job = jobs_.size();
            jobs_.emplace_back();
            jobs_.back().core = core_.empty() ? 0 : static_cast<std::uint32_t>((job + 1) % core_.size());
        }
        for (std::size_t helper = 0; helper + 1 < all; ++helper) {
            jobs_[first_helper + helper].owner = entity;
            const std::int64_t last = std::max<std::int64_t>(cpu_ns - each * static_cast<std::int64_t>(all - 1), 0);
            start(static_cast<std::uint32_t>(first_helper + helper), helper + 2 < all ? each : last);
        }
        start(entity, each);
        reckon();
    }

    /// Time goes on to the next event; whose it is. Nothing: there is none any more.
    std::optional<Entity> next() {
        release_ended();
        for (;;) {
            while (!computing_.empty() && jobs_[computing_.front().job].event != computing_.front().sequence) {
                pop(computing_);
                reckon();
            }
            if (now_ > most_ns)   // so that no sum below runs over
                throw std::invalid_argument{"replay: the run would take more than 73 years"};
            const bool timer = !timers_.empty() && (computing_.empty() || timers_.front().key <= next_served_at_);
            if (!timer && computing_.empty())
                return std::nullopt;
            if (timer) {
                const Event event = pop(timers_);
                if (pending_[event.job] != event.sequence)
                    continue;
                pending_[event.job] = 0;
                now_ = event.key;
                return event.job;
            }
            now_ = next_served_at_;
            settle();
            const std::uint32_t number = pop(computing_).job;
            Job& job = jobs_[number];
            job.event = 0;
            job.left -= served_ - job.since;
            if (job.left > 0) {   // its slice has ended
                hand_on(number);
                reckon();
                continue;
            }
            job.left = 0;
            --running_;
            job.ran_until = now_;
            ended_ = number;
            if (--jobs_[job.owner].outstanding == 0) {
                if (core_.empty())
                    reckon();
                return job.owner;
            }
            release_ended();
        }
    }

    static constexpr std::int64_t most_cpu_ns = std::int64_t{1} << 41;   // 36 minutes

private:
    static constexpr std::int64_t most_ns = std::int64_t{1} << 61;
    static constexpr std::int64_t one = 1 << 20;   // of service, a nanosecond of a whole core
    static constexpr std::int64_t slice_ns = 4'000'000;
    static constexpr std::int64_t hot_ns = 500'000;        // sched_migration_cost_ns
    static constexpr std::int64_t window_ns = 10'000'000;
    static constexpr std::uint32_t free_core = ~std::uint32_t{0};

    struct Event {
        std::int64_t key;
        std::uint32_t sequence;
        std::uint32_t job;   // of timers: the entity
        [[nodiscard]] bool before(const Event& other) const noexcept {
            return key != other.key ? key < other.key : sequence < other.sequence;
        }
    };
    struct Job {
        Entity owner = 0;
        std::uint32_t core = 0;          // that it has or had
        std::uint32_t event = 0;         // the sequence of its end in `computing_`; 0: it does not compute
        std::uint32_t outstanding = 0;   // of an entity: its jobs
        std::int64_t left = 0, since = 0, slice_since = 0;   // of service; since: `served_` when it began
        std::int64_t ran_until = std::numeric_limits<std::int64_t>::min() / 2;
    };
    struct Core {
        std::uint32_t running = free_core;
        std::vector<std::uint32_t> queue;
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

    void start(std::uint32_t number, std::int64_t cpu_ns) {
        Job& job = jobs_[number];
        job.left = cpu_ns * one;
        if (core_.empty())
            return run(number);
        if (ended_ == number) {   // it goes on
            ended_ = nobody;
            return run(number);
        }
        if (core_[job.core].running != free_core)
            if (const std::optional<std::uint32_t> idle = look_for_idle())
                job.core = *idle;
        Core& core = core_[job.core];
        if (core.running == free_core)
            return occupy(number);
        if (number == prompt_ && ended_ != core.running) {
            stop(core.running);
            core.queue.push_back(core.running);
            return occupy(number);
        }
        core.queue.push_back(number);
        if (ended_ != core.running)
            schedule(core.running);
    }

    void occupy(std::uint32_t number) {
        core_[jobs_[number].core].running = number;
        jobs_[number].slice_since = served_;
        run(number);
    }
    void run(std::uint32_t number) {
        ++running_;
        jobs_[number].since = served_;
        schedule(number);
    }
    /// When it ends or, where others queue, its slice.
    void schedule(std::uint32_t number) {
        Job& job = jobs_[number];
        std::int64_t end = job.since + job.left;
        if (!core_.empty() && !core_[job.core].queue.empty())
            end = std::min(end, std::max(job.slice_since + slice_ns * one, served_));
        job.event = ++sequence_;
        push(computing_, {end, sequence_, number});
    }
    void stop(std::uint32_t number) {
        Job& job = jobs_[number];
        job.left -= served_ - job.since;
        job.event = 0;
        job.ran_until = now_;
        --running_;
    }
    /// Its slice has ended: the next in the queue, if any, has the core.
    void hand_on(std::uint32_t number) {
        Job& job = jobs_[number];
        Core& core = core_[job.core];
        job.since = job.slice_since = served_;
        if (core.queue.empty())
            return schedule(number);
        job.ran_until = now_;
        --running_;
        core.queue.push_back(number);
        dispatch(core);
    }
    void dispatch(Core& core) {
        const std::uint32_t number = core.queue.front();
        core.queue.erase(core.queue.begin());
        occupy(number);
    }
    void release_ended() {
        if (ended_ == nobody)
            return;
        const std::uint32_t number = std::exchange(ended_, nobody);
        if (core_.empty())
            return;
        settle();
        const std::uint32_t at = jobs_[number].core;
        Core& core = core_[at];
        core.running = free_core;
        if (!core.queue.empty())
            dispatch(core);
        else
            pull(at);
        reckon();
    }
    /// A core that has fallen idle.
    void pull(std::uint32_t at) {
        Core* busiest = nullptr;
        for (Core& core : core_)
            if (!core.queue.empty() && (busiest == nullptr || core.queue.size() > busiest->queue.size()))
                busiest = &core;
        if (busiest == nullptr)
            return;
        for (auto job = busiest->queue.begin(); job != busiest->queue.end(); ++job)
            if (now_ - jobs_[*job].ran_until >= hot_ns) {
                const std::uint32_t number = *job;
                busiest->queue.erase(job);
                jobs_[number].core = at;
                return occupy(number);
            }
    }
    [[nodiscard]] std::optional<std::uint32_t> look_for_idle() {
        const auto n = static_cast<double>(core_.size());
        if (now_ - window_since_ >= window_ns) {
            const auto passed = static_cast<double>(now_ - window_since_);
            const double keeps = std::exp2(-passed / 32e6);
            utilization_ = keeps * utilization_ + (1 - keeps) * busy_ns_ / (passed * n);
            busy_ns_ = 0;
            window_since_ = now_;
        }
        if (n * (1 - 1.37 * utilization_ * utilization_) < 1)
            return std::nullopt;
        for (std::uint32_t at = 0; at < core_.size(); ++at)
            if (core_[at].running == free_core)
                return at;
        return std::nullopt;
    }

    void rebase() noexcept {   // the order stays
        for (Event& event : computing_)
            event.key -= served_;
        for (Job& job : jobs_)
            job.since -= served_, job.slice_since -= served_;
        served_ = 0;
    }
    void settle() noexcept {
        served_ += (now_ - settled_at_) * rate_;
        busy_ns_ += static_cast<double>(now_ - settled_at_) * static_cast<double>(running_);
        settled_at_ = now_;
    }
    void reckon() noexcept {
        if (computing_.empty())
            return void(rate_ = 0);
        if (running_ != rate_of_) {
            rate_of_ = running_;
            const auto running = static_cast<double>(running_);
            const double share = cores_ == 0 || running_ == 0 ? 1 : std::min(capacity_of(running, cores_, efficiency_) / running, 1.0);
            shared_rate_ = std::max<std::int64_t>(std::llround(share * static_cast<double>(one)), 1);
        }
        rate_ = shared_rate_;
        const std::int64_t left = std::max<std::int64_t>(computing_.front().key - served_, 0);
        next_served_at_ = now_ + (rate_ == one ? (left + one - 1) / one : (left + rate_ - 1) / rate_);
    }

    double cores_, efficiency_;
    Entity prompt_;
    std::int64_t now_ = 0;
    std::uint32_t sequence_ = 0;
    std::vector<std::uint32_t> pending_;   // of each entity: its timer's sequence; 0: none
    std::vector<Job> jobs_;                // of each entity its own, then those that help one
    std::vector<Core> core_;
    std::vector<Event> timers_, computing_;   // computing: by service
    std::uint32_t ended_ = nobody;            // keeps its core until the next event, in case it goes on
    std::int64_t served_ = 0, settled_at_ = 0, next_served_at_ = 0, rate_ = 0, shared_rate_ = one;
    std::int64_t window_since_ = 0;
    double busy_ns_ = 0, utilization_ = 1;
    std::size_t running_ = 0, rate_of_ = 0;   // threads that compute; those shared_rate_ is of
};

/// A length that some ledger tells of as one that a demand may have.
[[nodiscard]] constexpr std::int64_t bounded_ns(std::int64_t ns) noexcept {
    return std::clamp<std::int64_t>(ns, 0, VirtualTime::most_cpu_ns - 1);
}

}   // namespace drawpoint
