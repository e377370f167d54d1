#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "diagnosis/demands/demand_limit.hpp"
#include "diagnosis/replay/machine/event_queue.hpp"
#include "diagnosis/replay/machine/run_queue.hpp"

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
    VirtualTime(double cores, double efficiency, std::size_t entities, Entity prompt = nobody);

    [[nodiscard]] std::int64_t now_ns() const noexcept { return now_; }

    /// Lets `ns` pass for the entity; in place of the timer it waits for, if any.
    void wait(Entity entity, std::int64_t ns) {
        pending_[entity] = ++sequence_;
        timers_.push({now_ + ns, sequence_, entity});
    }

    /// `cpu_ns` of a core, less than `most_cpu_ns`, spread over `threads` ≥ 1, which begin together: of one entity at a time
    /// more than one. `spins`: its own thread keeps its core until the others have ended.
    void compute(Entity entity, std::int64_t cpu_ns, double threads = 1, bool spins = false);

    /// The entity whose event came last yields its core, if it computed.
    void yield(Entity entity) noexcept {
        if (ended_ == entity && !core_.empty())
            core_[jobs_[entity].core].queue.yield(turns_, entity);
    }

    /// Whether it still queues for its core though it waits: for others to have what it yielded.
    [[nodiscard]] bool queues(Entity entity) const noexcept { return turns_[entity].asleep; }

    /// Time goes on to the next event; whose it is. Nothing: there is none any more.
    std::optional<Entity> next();

    static constexpr std::int64_t most_cpu_ns = most_demand_ns;

private:
    static constexpr std::uint32_t free_core = ~std::uint32_t{0};

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

    /// The others of its entity have ended.
    void stop_spinning(std::uint32_t number);
    inline void own(std::uint32_t number, Entity owner) noexcept;
    inline void start(std::uint32_t number, std::int64_t cpu_ns);
    /// What it has computed since it was last looked at.
    inline void account(std::uint32_t number) noexcept;
    inline void change_turns(Core& core, std::uint32_t to);
    /// One that is in its core's queue.
    inline void occupy(std::uint32_t number);
    inline void run(std::uint32_t number);
    /// When it ends or, where others queue, at the next tick.
    inline void schedule(std::uint32_t number);
    [[nodiscard]] bool is_prompt(const Job& job) const noexcept { return job.owner == prompt_; }
    inline void leave(std::uint32_t number);
    /// A tick: one that queues goes to an idle core, if there is one, or has this one if it is its turn.
    void look_at_slice(std::uint32_t number);
    inline void release_ended();
    /// A core that has fallen idle may take a thread from another's queue.
    void pull(std::uint32_t at);
    /// One that queues at `from` and did not run just now.
    void move(Core& from, std::uint32_t at);
    [[nodiscard]] std::optional<std::uint32_t> look_for_idle(std::uint32_t from);

    void rebase() noexcept;
    inline void settle() noexcept;
    inline void reckon() noexcept;

    double cores_, efficiency_;
    Entity prompt_;
    std::int64_t now_ = 0;
    std::uint32_t sequence_ = 0;
    std::vector<std::uint32_t> pending_;   // of each entity: its timer's sequence; 0: none
    std::vector<Job> jobs_;                // of each entity its own, then those that help one
    std::vector<Turn> turns_;              // of each job
    std::vector<Core> core_;
    EventQueue timers_, computing_;   // computing: by service
    std::uint32_t ended_ = nobody;    // keeps its core until the next event, in case it goes on
    std::int64_t served_ = 0, settled_at_ = 0, next_served_at_ = 0, rate_ = 0, shared_rate_;
    std::int64_t window_since_ = 0;
    double busy_ns_ = 0, utilization_ = 1;
    std::size_t running_ = 0, rate_of_ = 0;   // threads that compute; those shared_rate_ is of
    std::size_t occupied_ = 0, queued_ = 0;   // cores; threads that are awake
    std::minstd_rand dice_;
};

}   // namespace drawpoint
