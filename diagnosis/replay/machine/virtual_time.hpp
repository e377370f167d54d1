#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "diagnosis/replay/machine/run_queue.hpp"

#include <drawpoint/pipeline/loader/machine/worker_costs.hpp>

namespace drawpoint {

/// What `n` computing threads get done together, in whole cores: all of them alone, `efficiency` each once all `cores`
/// compute.
[[nodiscard]] inline double capacity_of(double n, double cores, double efficiency) noexcept {
    const double busy = std::min(n, cores);
    if (cores <= 1 || busy <= 1)
        return busy;
    return 1 + std::max(cores * efficiency - 1, 0.0) * (busy - 1) / (cores - 1);
}

/// A clock that jumps from event to event: timers, and cores with a `RunQueue` each, as Linux runs threads. A thread keeps its core
/// until it waits or a tick finds that it is another's turn; the `prompt` one also where a piece of its work ends. One that wakes goes
/// back to the core it had; where that is busy, to one that is idle, but only as far as the kernel looks for one (not at all where
/// cores are busy: its SIS_UTIL); else it queues. A core that falls idle takes a thread from another's queue now and then, one that is
/// idle at a tick always, but none that ran just now. So cores can be idle for a while though threads wait, as they are in reality.
/// Cores that compute all have the same speed, so one sum of service stands for all. Events of one moment come in the order they were
/// asked for, timers first.
class VirtualTime {
public:
    using Entity = std::uint32_t;
    static constexpr Entity nobody = ~Entity{0};

    /// `cores` 0: nobody waits for one. `prompt`: has the system's slice; the others are batch threads that ask for longer ones, and take no
    /// core from another when they wake.
    VirtualTime(double cores, double efficiency, std::size_t entities, Entity prompt = nobody)
        : cores_{cores},
          efficiency_{efficiency},
          prompt_{prompt},
          pending_(entities, 0),
          jobs_(entities),
          turns_(entities) {
        timers_.reserve(entities * 2);
        computing_.reserve(entities * 2);
        core_.resize(cores == 0 ? 0 : static_cast<std::size_t>(std::max(std::ceil(cores - 1e-9), 1.0)));
        for (Entity entity = 0; entity < entities; ++entity)
            own(entity, entity);
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
    /// more than one. `spins`: its own thread keeps its core until the others have ended.
    void compute(Entity entity, std::int64_t cpu_ns, double threads = 1, bool spins = false) {
        settle();
        if (served_ > most_cpu_ns * one)
            rebase();
        const auto all = static_cast<std::size_t>(std::ceil(threads));
        const std::int64_t each = all == 1 ? cpu_ns : std::llround(static_cast<double>(cpu_ns) / threads);
        const std::size_t first_helper = pending_.size();
        jobs_.resize(std::max(jobs_.size(), first_helper + all - 1));
        turns_.resize(jobs_.size());
        jobs_[entity].outstanding = static_cast<std::uint32_t>(all);
        jobs_[entity].spins = spins && all > 1;
        start(entity, each);
        std::int64_t left = cpu_ns - each;
        for (std::size_t helper = 1; helper < all; ++helper, left -= each) {
            Job& job = jobs_[first_helper + helper - 1];
            own(static_cast<std::uint32_t>(first_helper + helper - 1), entity);
            if (!core_.empty() && job.ran_until < 0)
                job.core = static_cast<std::uint32_t>((jobs_[entity].core + helper) % core_.size());
            start(static_cast<std::uint32_t>(first_helper + helper - 1), std::clamp<std::int64_t>(left, 0, each));
        }
        reckon();
    }

    /// The entity whose event came last yields its core, if it computed.
    void yield(Entity entity) noexcept {
        if (ended_ == entity && !core_.empty())
            core_[jobs_[entity].core].queue.yield(turns_, entity);
    }

    /// Whether it still queues for its core though it waits: for others to have what it yielded.
    [[nodiscard]] bool queues(Entity entity) const noexcept { return turns_[entity].asleep; }

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
            account(number);
            if (job.left > 0) {
                look_at_slice(number);
                reckon();
                continue;
            }
            Job& own = jobs_[job.owner];
            if (number == job.owner && own.spins && own.outstanding > 1) {
                own.left = forever;
                schedule(number);
                reckon();
                continue;
            }
            job.left = 0;
            --running_;
            job.ran_until = now_;
            ended_ = number;   // its core stays occupied
            if (--own.outstanding == 0)
                return job.owner;
            release_ended();
            if (own.spins && own.outstanding == 1 && own.left > forever / 2)
                stop_spinning(job.owner);
        }
    }

    static constexpr std::int64_t most_cpu_ns = std::int64_t{1} << 41;   // 36 minutes

private:
    static constexpr std::int64_t most_ns = std::int64_t{1} << 61;
    static constexpr std::int64_t one = 1 << 20;   // of service, a nanosecond of a whole core
    static constexpr std::int64_t tick = RunQueue::tick / Turn::ns * one;
    static constexpr std::int64_t system_slice_ns = 1'400'000;
    static constexpr std::int64_t hot_ns = 500'000;   // sched_migration_cost_ns
    static constexpr std::int64_t window_ns = 10'000'000;
    static constexpr double half_life_ns = 32e6;   // of PELT, the kernel's average load
    static constexpr std::uint32_t free_core = ~std::uint32_t{0};

    static constexpr std::int64_t forever = std::int64_t{1} << 61;

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
        bool spins = false;              // of an entity: its own job, until the others have ended
        std::int64_t left = 0;           // of service
        std::int64_t since = 0;          // `served_` when `left` was that
        std::int64_t ran_until = std::numeric_limits<std::int64_t>::min() / 2;
    };
    struct Core {
        std::uint32_t running = free_core;
        RunQueue queue;   // with the one that runs
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

    /// The others of its entity have ended.
    void stop_spinning(std::uint32_t number) {
        Job& job = jobs_[number];
        const bool runs = job.event != 0;
        if (runs)
            account(number);
        job.left = 0;
        if (runs)
            schedule(number);
        reckon();
    }
    void own(std::uint32_t number, Entity owner) noexcept {
        jobs_[number].owner = owner;
        turns_[number].slice = (owner == prompt_ ? system_slice_ns : worker_slice_ns) * Turn::ns;
    }
    void start(std::uint32_t number, std::int64_t cpu_ns) {
        Job& job = jobs_[number];
        job.left = cpu_ns * one;
        if (core_.empty())
            return run(number);
        if (ended_ == number) {   // it goes on
            ended_ = nobody;
            Core& core = core_[job.core];
            job.since = served_;
            ++running_;
            // The loop enters the kernel, which looks at its slice there: its own clock is read. Or a tick comes just now.
            if ((is_prompt(job) || served_ % tick == 0) && core.queue.look_at(turns_, number))
                return change_turns(core, core.queue.pick(turns_, number, true));
            return schedule(number);
        }
        if (turns_[number].asleep) {   // it has never left
            core_[job.core].queue.wake(turns_, number);
        } else {
            if (core_[job.core].running != free_core)
                if (const std::optional<std::uint32_t> idle = look_for_idle(job.core))
                    job.core = *idle;
            core_[job.core].queue.join(turns_, number);
        }
        Core& core = core_[job.core];
        if (core.running == free_core)
            return occupy(number);
        ++queued_;
        if (ended_ == core.running)
            return;
        const std::uint32_t running = core.running;
        account(running);
        core.queue.look_at(turns_, running);
        if (is_prompt(job)) {   // the others are batch threads, which take no core when they wake
            const bool is_shorter = turns_[number].slice < turns_[running].slice;
            if (core.queue.pick(turns_, running, !is_shorter) == number)
                return change_turns(core, number);
            if (is_shorter)
                core.queue.protect(turns_, running, false);
        }
        schedule(running);   // now its slices count
    }
    /// What it has computed since it was last looked at.
    void account(std::uint32_t number) noexcept {
        Job& job = jobs_[number];
        const std::int64_t served = served_ - std::exchange(job.since, served_);
        job.left -= served;
        turns_[number].ran += served / (one / Turn::ns);
    }
    void change_turns(Core& core, std::uint32_t to) {
        if (core.running == to)
            return schedule(to);
        ++queued_;
        core.queue.put_back(core.running);
        leave(std::exchange(core.running, free_core));
        --queued_;
        occupy(to);
    }
    /// One that is in its core's queue.
    void occupy(std::uint32_t number) {
        Core& core = core_[jobs_[number].core];
        core.running = number;
        core.queue.protect(turns_, number, true);
        ++occupied_;
        run(number);
    }
    void run(std::uint32_t number) {
        ++running_;
        jobs_[number].since = served_;
        schedule(number);
    }
    /// When it ends or, where others queue, at the next tick.
    void schedule(std::uint32_t number) {
        Job& job = jobs_[number];
        std::int64_t at = job.since + job.left;
        if (!core_.empty() && core_[job.core].queue.size() > 1)
            at = std::min(at, (served_ / tick + 1) * tick);
        job.event = ++sequence_;
        push(computing_, {at, sequence_, number});
    }
    [[nodiscard]] bool is_prompt(const Job& job) const noexcept { return job.owner == prompt_; }
    void leave(std::uint32_t number) {
        Job& job = jobs_[number];
        job.event = 0;
        job.ran_until = now_;
        --occupied_;
        --running_;
    }
    /// A tick: one that queues goes to an idle core, if there is one, or has this one if it is its turn.
    void look_at_slice(std::uint32_t number) {
        Core& core = core_[jobs_[number].core];
        if (core.queue.size() > 1 && occupied_ < core_.size())
            move(core, static_cast<std::uint32_t>(std::ranges::find(core_, free_core, &Core::running) - core_.begin()));
        if (core.queue.look_at(turns_, number))
            return change_turns(core, core.queue.pick(turns_, number, true));
        schedule(number);
    }
    void release_ended() {
        if (ended_ == nobody)
            return;
        const std::uint32_t number = std::exchange(ended_, nobody), at = jobs_[number].core;
        if (core_.empty())
            return reckon();
        settle();
        Core& core = core_[at];
        core.running = free_core;
        --occupied_;
        core.queue.sleep(turns_, number);
        if (const std::uint32_t next = core.queue.pick(turns_, RunQueue::nobody, false); next != RunQueue::nobody) {
            --queued_;
            occupy(next);
        } else if (queued_ != 0) {
            pull(at);
        }
        reckon();
    }
    /// A core that has fallen idle throws dice whether it looks for a thread (Linux from 6.18 on, by how often it has found one):
    /// in six runs of loaders it took 19 to 34 % of those that it could have (sched_switch).
    void pull(std::uint32_t at) {
        constexpr std::uint32_t one_in = 4;
        if (dice_() % one_in == 0)
            move(*std::ranges::max_element(core_, {}, [](const Core& core) { return core.queue.size(); }), at);
    }
    /// One that queues at `from` and did not run just now.
    void move(Core& from, std::uint32_t at) {
        for (const std::uint32_t number : from.queue.threads()) {
            Job& job = jobs_[number];
            if (number == from.running || turns_[number].asleep || now_ - job.ran_until < hot_ns)
                continue;
            from.queue.leave(turns_, number);
            core_[at].queue.join(turns_, number, true);
            --queued_;
            job.core = at;
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
                job.since -= before;
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
    std::vector<Turn> turns_;              // of each job
    std::vector<Core> core_;
    std::vector<Event> timers_, computing_;   // computing: by service
    std::uint32_t ended_ = nobody;            // keeps its core until the next event, in case it goes on
    std::int64_t served_ = 0, settled_at_ = 0, next_served_at_ = 0, rate_ = 0, shared_rate_ = one;
    std::int64_t window_since_ = 0;
    double busy_ns_ = 0, utilization_ = 1;
    std::size_t running_ = 0, rate_of_ = 0;   // threads that compute; those shared_rate_ is of
    std::size_t occupied_ = 0, queued_ = 0;   // cores; threads that are awake
    std::minstd_rand dice_;
};

/// A length that some ledger tells of as one that a demand may have.
[[nodiscard]] constexpr std::int64_t bounded_ns(std::int64_t ns) noexcept {
    return std::clamp<std::int64_t>(ns, 0, VirtualTime::most_cpu_ns - 1);
}

}   // namespace drawpoint
