#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include <drawpoint/diagnosis/demands/scheduler_times.hpp>
#include "diagnosis/demands/demand_limit.hpp"
#include "diagnosis/replay/machine/event_queue.hpp"
#include "diagnosis/replay/machine/newidle_balance.hpp"
#include "diagnosis/replay/machine/run_queue.hpp"

namespace drawpoint {

/// The speed of `n` computing threads together, in whole cores: 1 for one thread alone, `efficiency` for each once all
/// `cores` compute.
[[nodiscard]] inline double capacity_of(double n, double cores, double efficiency) noexcept {
    const double busy = std::min(n, cores);
    if (cores <= 1 || busy <= 1)
        return busy;
    return 1 + std::max(cores * efficiency - 1, 0.0) * (busy - 1) / (cores - 1);
}

/// How the threads of an entity that computes on several wait for each other.
enum class Spinning : std::uint8_t {
    no,      ///< its own thread gives its core up until the others have ended
    own,     ///< its own thread keeps its core until then
    yields   ///< likewise, and the others, when they have ended, yield their cores a few times before they sleep
};

/// A clock that jumps from event to event: timers, and cores with a `RunQueue` each, which run threads as Linux does.
/// * A thread keeps its core until it waits, or until a tick finds that it is another thread's turn; for the `prompt`
///   thread, that is also checked where a piece of its work ends.
/// * A thread that wakes goes back to the core it had. If that is busy, it goes to an idle one, but only as far as the
///   kernel looks for one (not at all where cores are busy: SIS_UTIL); else it queues.
/// * A helper of an entity, woken by the entity's own thread, goes to the less loaded one of their two cores.
/// * A core that falls idle sometimes takes a thread from another core's queue; a core that is idle at a tick always
///   does. Threads that ran very recently are not moved. So cores can be idle for a while although threads wait, as in
///   reality.
/// * All cores that compute have the same speed, so one sum of service stands for all.
/// Events of the same time come in the order in which they were asked for, timers first.
class VirtualTime {
public:
    using Entity = std::uint32_t;
    static constexpr Entity nobody = ~Entity{0};

    /// `cores` 0: no thread waits for one. `prompt` has the slice of a normal thread; the others are batch threads,
    /// which ask for longer slices and take no core from another thread when they wake.
    VirtualTime(double cores, double efficiency, std::size_t entities, Entity prompt = nobody,
                const SchedulerTimes& = {});

    [[nodiscard]] std::int64_t now_ns() const noexcept { return now_; }

    /// The entity's next event comes after `ns`. Replaces the timer it waits for, if any.
    void wait(Entity entity, std::int64_t ns) {
        pending_[entity] = ++sequence_;
        timers_.push({now_ + ns, sequence_, entity});
    }

    /// The entity computes for `cpu_ns` of a core, less than `most_cpu_ns`, spread over `threads` ≥ 1 that begin
    /// together; only one entity at a time may have more than one.
    void compute(Entity entity, std::int64_t cpu_ns, double threads = 1, Spinning = Spinning::no);

    /// The entity, which computes alone, ends at once, or as soon as it has a core.
    void stop(Entity entity);

    /// The entity of the last event, if it computed, yields its core `times` before it sleeps.
    void yield(Entity entity, std::uint32_t times) noexcept {
        if (ended_ == entity && !core_.empty())
            jobs_[entity].yields = times;
    }

    /// Whether the entity yields: `compute` begins once it has a core, without waking it.
    [[nodiscard]] bool yields(Entity entity) const noexcept { return jobs_[entity].idles; }

    /// Advances to the next event and returns its entity; nothing if there are no events.
    std::optional<Entity> next();

    static constexpr std::int64_t most_cpu_ns = most_demand_ns;

private:
    static constexpr std::uint32_t free_core = ~std::uint32_t{0};

    struct Job {
        Entity owner = 0;
        std::uint32_t core = 0;             // that it has or had
        std::uint32_t event = 0;            // sequence number of its end in `computing_`; 0: it does not compute
        std::uint32_t outstanding = 0;      // of an entity: jobs that have not ended
        Spinning spinning = Spinning::no;   // of an entity
        std::uint32_t yields = 0;           // left until it sleeps
        bool idles = false;                 // it has ended, and yields
        std::int64_t left = 0;              // of service, when `served_` was `since`
        std::int64_t since = 0;
        std::int64_t ran_until = std::numeric_limits<std::int64_t>::min() / 2;
        std::int64_t woken_at = 0;   // of a helper
    };
    struct Core {
        std::uint32_t running = free_core;
        RunQueue queue;    // including the one that runs
        double load = 0;   // threads in the queue, averaged as the kernel does
        std::int64_t load_at = 0;
        NewidleBalance newidle;
    };

    inline void own(std::uint32_t number, Entity owner) noexcept;
    inline void start(std::uint32_t number, std::int64_t cpu_ns);
    /// `helper` 1 …: of the entity's threads beside its own.
    void start_helper(Entity entity, std::size_t helper, std::int64_t cpu_ns);
    /// Subtracts what it has computed since it was last looked at.
    inline void account(std::uint32_t number) noexcept;
    inline void change_turns(Core& core, std::uint32_t to);
    /// Gives the core to a job in its queue.
    inline void occupy(std::uint32_t number);
    inline void run(std::uint32_t number);
    /// Its next event: its end or, if others queue, the next tick.
    inline void schedule(std::uint32_t number);
    [[nodiscard]] bool is_prompt(const Job& job) const noexcept { return job.owner == prompt_; }
    inline void leave(std::uint32_t number);
    /// A tick: a queued job goes to an idle core, if there is one, or gets this one if it is its turn.
    void look_at_slice(std::uint32_t number);
    inline void release_ended();
    /// A job that has ended yields its core; it gets it back for a moment.
    void yield_ended(std::uint32_t number);
    /// Changes what the job has left to compute, whether it has a core or queues for one.
    void set_left(std::uint32_t number, std::int64_t left);
    /// Gives work to a job that yields.
    void set_to_work(std::uint32_t number, std::int64_t cpu_ns);
    /// Brings the core's load up to now; called before its queue changes.
    void average_load(Core& core) noexcept;
    /// The core on which a thread of the same process looks for room that the running `waker` wakes: its own or the
    /// waker's, whichever has less to do (the kernel's wake_affine).
    [[nodiscard]] std::uint32_t affine_core(const Job& woken, const Job& waker) noexcept;
    /// A core that has fallen idle may take a job from another queue.
    void pull(std::uint32_t at);
    /// Moves one that queues at `from` and did not run very recently.
    void move(Core& from, std::uint32_t at);
    [[nodiscard]] std::optional<std::uint32_t> look_for_idle(std::uint32_t from);

    void rebase() noexcept;
    inline void settle() noexcept;
    inline void reckon() noexcept;

    SchedulerTimes times_;
    std::int64_t tick_;   // of service
    double cores_, efficiency_;
    Entity prompt_;
    std::int64_t now_ = 0;
    std::uint32_t sequence_ = 0;
    std::vector<std::uint32_t> pending_;   // sequence number of the timer of each entity; 0: none
    std::vector<Job> jobs_;                // each entity's own, then those of its other threads
    std::vector<Turn> turns_;              // of each job
    std::vector<Core> core_;
    EventQueue timers_, computing_;   // computing_: by service
    std::uint32_t ended_ = nobody;    // keeps its core until the next event, in case it goes on
    std::int64_t served_ = 0, settled_at_ = 0, next_served_at_ = 0, rate_ = 0, shared_rate_;
    std::int64_t window_since_ = 0, queued_at_ = 0;
    double busy_ns_ = 0, utilization_ = 1;
    std::size_t running_ = 0, rate_of_ = 0;   // threads that compute; how many did when shared_rate_ was computed
    std::size_t occupied_ = 0, queued_ = 0;   // cores; awake threads in queues without a core
    std::minstd_rand dice_;
};

}   // namespace drawpoint
