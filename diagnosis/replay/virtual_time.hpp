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

#include "pipeline/thread_scheduling.hpp"

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
/// until it waits or, if others queue there, a tick finds that its slice is over, or the end of a piece of its work, where it
/// enters the kernel: its own clock is read there. One that wakes goes back to the core it had; where
/// that is busy, to one that is idle, but only as far as the kernel looks for one (not at all where cores are busy: its SIS_UTIL);
/// else it queues. A core that falls idle takes a thread from another's queue, unless that ran just now; one that is idle at a tick
/// takes any. So cores can be idle for a while though threads wait, as they are in reality. Cores that compute all have the same
/// speed, so one sum of service stands for all. Events of one moment come in the order they were asked for, timers first.
class VirtualTime {
public:
    using Entity = std::uint32_t;
    static constexpr Entity nobody = ~Entity{0};

    /// `cores` 0: nobody waits for one. `prompt`: runs at once when it wakes, as its slice is shorter than the others'.
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

    /// `cpu_ns` of a core, less than `most_cpu_ns`, spread over `threads` ≥ 1, which begin together: of one entity at a time
    /// more than one.
    void compute(Entity entity, std::int64_t cpu_ns, double threads = 1) {
        settle();
        if (served_ > most_cpu_ns * one)
            rebase();
        const auto all = static_cast<std::size_t>(std::ceil(threads));
        const std::int64_t each = all == 1 ? cpu_ns : std::llround(static_cast<double>(cpu_ns) / threads);
        const std::size_t first_helper = pending_.size();
        jobs_.resize(std::max(jobs_.size(), first_helper + all - 1));
        jobs_[entity].outstanding = static_cast<std::uint32_t>(all);
        start(entity, each);
        std::int64_t left = cpu_ns - each;
        for (std::size_t helper = 1; helper < all; ++helper, left -= each) {
            Job& job = jobs_[first_helper + helper - 1];
            job.owner = entity;
            if (!core_.empty() && job.ran_until < 0)
                job.core = static_cast<std::uint32_t>((jobs_[entity].core + helper) % core_.size());
            start(static_cast<std::uint32_t>(first_helper + helper - 1), std::clamp<std::int64_t>(left, 0, each));
        }
        reckon();
    }

    /// Time goes on to the next event; whose it is. Nothing: there is none any more.
    std::optional<Entity> next() {
        release_ended();
        for (;;) {
            while (!computing_.empty() && jobs_[computing_.front().job].event != computing_.front().sequence) {
                pop(computing_);
                settle();
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
            if (served_ > most_cpu_ns * one)
                rebase();
            const std::uint32_t number = pop(computing_).job;
            Job& job = jobs_[number];
            job.event = 0;
            job.left -= served_ - job.since;
            if (job.left > 0) {
                look_at_slice(number);
                reckon();
                continue;
            }
            job.left = 0;
            --running_;
            job.ran_until = now_;
            ended_ = number;   // its core stays occupied
            if (--jobs_[job.owner].outstanding == 0)
                return job.owner;
            release_ended();
        }
    }

    static constexpr std::int64_t most_cpu_ns = std::int64_t{1} << 41;   // 36 minutes

private:
    static constexpr std::int64_t most_ns = std::int64_t{1} << 61;
    static constexpr std::int64_t one = 1 << 20;            // of service, a nanosecond of a whole core
    static constexpr std::int64_t tick = 4'000'000 * one;   // of CONFIG_HZ=250
    static constexpr std::int64_t slice = worker_slice_ns * one,
                                  prompt_slice = 1'400'000 * one;   // a worker's, the system's
    static constexpr std::int64_t hot_ns = 500'000;                 // sched_migration_cost_ns
    static constexpr std::int64_t window_ns = 10'000'000;
    static constexpr double half_life_ns = 32e6;   // of PELT, the kernel's average load
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
        std::uint32_t core = 0;                    // that it has or had
        std::uint32_t event = 0;                   // the sequence of its end in `computing_`; 0: it does not compute
        std::uint32_t outstanding = 0;             // of an entity: its jobs
        std::int64_t left = 0;                     // of service
        std::int64_t since = 0, slice_since = 0;   // `served_` when it began
        std::int64_t ran_until = std::numeric_limits<std::int64_t>::min() / 2;
    };
    struct Core {
        std::uint32_t running = free_core;
        std::vector<std::uint32_t> queue;   // short: the last first
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
            Core& core = core_[job.core];
            if (core.queue.empty() || !slice_is_over(job, true))
                return run(number);
            core.running = free_core;
            --occupied_;
            job.ran_until = now_;
            const std::uint32_t next = take_first(core);
            enqueue(core, number, is_prompt(job));
            return occupy(next);
        }
        if (core_[job.core].running != free_core)
            if (const std::optional<std::uint32_t> idle = look_for_idle(job.core))
                job.core = *idle;
        Core& core = core_[job.core];
        if (core.running == free_core)
            return occupy(number);
        const bool prompt = is_prompt(job);
        if (prompt && ended_ != core.running && !is_prompt(jobs_[core.running])) {
            const std::uint32_t preempted = core.running;
            stop(preempted);
            enqueue(core, preempted, false);
            return occupy(number);
        }
        enqueue(core, number, prompt);
        if (core.queue.size() == 1 && ended_ != core.running)   // now its slices count
            schedule(core.running);
    }

    void occupy(std::uint32_t number) {
        core_[jobs_[number].core].running = number;
        ++occupied_;
        jobs_[number].slice_since = served_;
        run(number);
    }
    void run(std::uint32_t number) {
        ++running_;
        jobs_[number].since = served_;
        schedule(number);
    }
    void enqueue(Core& core, std::uint32_t number, bool first) {
        core.queue.insert(first ? core.queue.end() : core.queue.begin(), number);
        ++queued_;
    }
    std::uint32_t take_first(Core& core) {
        const std::uint32_t number = core.queue.back();
        core.queue.pop_back();
        --queued_;
        return number;
    }
    /// When it ends or, where others queue, at the next tick.
    void schedule(std::uint32_t number) {
        Job& job = jobs_[number];
        std::int64_t at = job.since + job.left;
        if (!core_.empty() && !core_[job.core].queue.empty())
            at = std::min(at, (served_ / tick + 1) * tick);
        job.event = ++sequence_;
        push(computing_, {at, sequence_, number});
    }
    [[nodiscard]] bool is_prompt(const Job& job) const noexcept { return job.owner == prompt_; }
    /// At the tick that finds it so: at those before, slices that were over while nobody queued have been renewed. `entered`: the
    /// thread has entered the kernel, which looks at its slice there.
    [[nodiscard]] bool slice_is_over(Job& job, bool entered = false) const noexcept {
        const std::vector<std::uint32_t>& queue = core_[job.core].queue;
        // The shortest one's among those that want the core.
        const bool is_short = is_prompt(job) || (!queue.empty() && is_prompt(jobs_[queue.back()]));
        const std::int64_t most = is_short ? prompt_slice : slice;
        const auto over_at = [&] { return (job.slice_since + most + tick - 1) / tick * tick; };
        while (over_at() + one <= served_)   // events come up to a nanosecond late
            job.slice_since = over_at();
        return over_at() <= served_ || (entered && job.slice_since + most <= served_);
    }
    void stop(std::uint32_t number) {
        Job& job = jobs_[number];
        job.left -= served_ - job.since;
        job.event = 0;
        leave(job);
    }
    void leave(Job& job) {
        job.ran_until = now_;
        core_[job.core].running = free_core;
        --occupied_;
        --running_;
    }
    /// A tick: what queues goes to an idle core, if there is one, or has this one's once the slice is over.
    void look_at_slice(std::uint32_t number) {
        Job& job = jobs_[number];
        Core& core = core_[job.core];
        job.since = served_;
        if (!core.queue.empty() && occupied_ < core_.size()) {
            const auto idle = std::ranges::find(core_, free_core, &Core::running);
            const std::uint32_t moved = take_first(core);
            jobs_[moved].core = static_cast<std::uint32_t>(idle - core_.begin());
            occupy(moved);
        }
        if (core.queue.empty() || !slice_is_over(job))
            return schedule(number);
        leave(job);
        const std::uint32_t next = take_first(core);
        enqueue(core, number, is_prompt(job));
        occupy(next);
    }
    void release_ended() {
        if (ended_ == nobody)
            return;
        const std::uint32_t at = jobs_[std::exchange(ended_, nobody)].core;
        if (core_.empty())
            return reckon();
        settle();
        core_[at].running = free_core;
        --occupied_;
        if (!core_[at].queue.empty())
            occupy(take_first(core_[at]));
        else if (queued_ != 0)
            pull(at);
        reckon();
    }
    /// A core that has fallen idle.
    void pull(std::uint32_t at) {
        Core& busiest = *std::ranges::max_element(core_, {}, [](const Core& core) { return core.queue.size(); });
        for (std::size_t i = busiest.queue.size(); i-- != 0;) {
            const std::uint32_t number = busiest.queue[i];
            if (now_ - jobs_[number].ran_until < hot_ns)
                continue;
            busiest.queue.erase(busiest.queue.begin() + static_cast<std::ptrdiff_t>(i));
            --queued_;
            jobs_[number].core = at;
            return occupy(number);
        }
    }
    [[nodiscard]] std::optional<std::uint32_t> look_for_idle(std::uint32_t from) {
        const auto n = static_cast<double>(core_.size());
        if (now_ - window_since_ >= window_ns) {
            const auto passed = static_cast<double>(now_ - window_since_);
            const double keeps = std::exp2(-passed / half_life_ns);
            const double used = std::min((busy_ns_ / passed + n - cores_) / n, 1.0);   // by others, too
            utilization_ = keeps * utilization_ + (1 - keeps) * used;
            busy_ns_ = 0;
            window_since_ = now_;
        }
        const double most = n * (1 - 1.37 * utilization_ * utilization_);   // imbalance_pct 117, squared
        if (occupied_ == core_.size())
            return std::nullopt;
        for (std::uint32_t i = 1; i <= most; ++i)
            if (const std::uint32_t at = (from + i) % static_cast<std::uint32_t>(core_.size());
                core_[at].running == free_core)
                return at;
        return std::nullopt;
    }

    void rebase() noexcept {                                 // the order stays
        const std::int64_t before = served_ / tick * tick;   // ticks stay where they are
        for (Event& event : computing_)
            event.key -= before;
        for (std::size_t number = 0; number < jobs_.size(); ++number)
            if (Job& job = jobs_[number]; job.event != 0 || number == ended_)
                job.since -= before, job.slice_since -= before;
        served_ -= before;
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
            const bool limited = cores_ != 0 && running_ != 0;
            const double share = limited ? std::min(capacity_of(running, cores_, efficiency_) / running, 1.0) : 1;
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
    std::size_t occupied_ = 0, queued_ = 0;   // cores; threads
};

/// A length that some ledger tells of as one that a demand may have.
[[nodiscard]] constexpr std::int64_t bounded_ns(std::int64_t ns) noexcept {
    return std::clamp<std::int64_t>(ns, 0, VirtualTime::most_cpu_ns - 1);
}

}   // namespace drawpoint
