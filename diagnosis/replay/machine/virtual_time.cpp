#include "diagnosis/replay/machine/virtual_time.hpp"

#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>

#include <drawpoint/pipeline/loader/machine/detail/worker_costs.hpp>

#include "diagnosis/replay/machine/linux_scheduler.hpp"

namespace drawpoint {

namespace {

constexpr std::int64_t most_ns = std::int64_t{1} << 61;
constexpr std::int64_t one = 1 << 20;   // unit of service: a nanosecond of a whole core
constexpr std::int64_t forever = std::int64_t{1} << 61;
constexpr std::uint32_t helper_yields = 4;    // as in libstdc++'s std::atomic::wait
constexpr std::int64_t yielding_ns = 4'000;   // on a core between two yields

}   // namespace

VirtualTime::VirtualTime(double cores, double efficiency, std::size_t entities, Entity prompt,
                         const SchedulerTimes& times)
    : times_{times},
      tick_{times.tick_ns * one},
      cores_{cores},
      efficiency_{efficiency},
      prompt_{prompt},
      pending_(entities, 0),
      jobs_(entities),
      turns_(entities),
      shared_rate_{one} {
    timers_.reserve(entities * 2);
    computing_.reserve(entities * 2);
    core_.resize(cores == 0 ? 0 : static_cast<std::size_t>(std::max(std::ceil(cores - 1e-9), 1.0)),
                 {.queue = RunQueue{times.tick_ns}});
    for (Entity entity = 0; entity < entities; ++entity)
        own(entity, entity);
    if (!core_.empty())
        for (std::size_t job = 0; job < entities; ++job)
            jobs_[job].core = static_cast<std::uint32_t>(job % core_.size());
}

void VirtualTime::compute(Entity entity, std::int64_t cpu_ns, double threads, Spinning spinning) {
    settle();
    if (served_ > most_cpu_ns * one)
        rebase();
    const auto all = static_cast<std::size_t>(std::ceil(threads));
    const std::int64_t each = all == 1 ? cpu_ns : std::llround(static_cast<double>(cpu_ns) / threads);
    jobs_.resize(std::max(jobs_.size(), pending_.size() + all - 1));
    turns_.resize(jobs_.size());
    jobs_[entity].outstanding = static_cast<std::uint32_t>(all);
    if (jobs_[entity].idles) {
        set_to_work(entity, cpu_ns);
        return reckon();
    }
    jobs_[entity].spinning = all > 1 ? spinning : Spinning::no;
    start(entity, each);
    std::int64_t left = cpu_ns - each;
    for (std::size_t helper = 1; helper < all; ++helper, left -= each)
        start_helper(entity, helper, std::clamp<std::int64_t>(left, 0, each));
    reckon();
}

void VirtualTime::start_helper(Entity entity, std::size_t helper, std::int64_t cpu_ns) {
    const auto number = static_cast<std::uint32_t>(pending_.size() + helper - 1);
    Job& job = jobs_[number];
    if (job.idles)
        return set_to_work(number, cpu_ns);
    own(number, entity);
    if (!core_.empty() && !turns_[number].asleep && ended_ != number)
        job.core = job.ran_until < 0 ? static_cast<std::uint32_t>((jobs_[entity].core + helper) % core_.size())
                                     : affine_core(job, jobs_[entity]);
    job.woken_at = now_;
    start(number, cpu_ns);
}

std::optional<VirtualTime::Entity> VirtualTime::next() {
    release_ended();
    for (;;) {
        while (!computing_.empty() && jobs_[computing_.front().whose].event != computing_.front().sequence) {
            computing_.pop();
            settle();
            reckon();
        }
        if (now_ > most_ns)   // so that no sum below overflows
            throw std::invalid_argument{"replay: the run would take more than 73 years"};
        const bool timer = !timers_.empty() && (computing_.empty() || timers_.front().at <= next_served_at_);
        if (!timer && computing_.empty())
            return std::nullopt;
        if (timer) {
            const EventQueue::Event event = timers_.pop();
            if (pending_[event.whose] != event.sequence)
                continue;
            pending_[event.whose] = 0;
            now_ = event.at;
            return event.whose;
        }
        now_ = next_served_at_;
        settle();
        if (served_ > most_cpu_ns * one)
            rebase();
        const std::uint32_t number = computing_.pop().whose;
        Job& job = jobs_[number];
        job.event = 0;
        account(number);
        if (job.left > 0) {
            look_at_slice(number);
            reckon();
            continue;
        }
        Job& own = jobs_[job.owner];
        if (number == job.owner && own.spinning != Spinning::no && own.outstanding > 1) {
            own.left = forever;
            schedule(number);
            reckon();
            continue;
        }
        job.left = 0;
        --running_;
        job.ran_until = now_;
        ended_ = number;   // its core stays occupied
        if (job.idles) {
            release_ended();
            continue;
        }
        if (number != job.owner && own.spinning == Spinning::yields)
            job.yields = helper_yields;
        if (--own.outstanding == 0)
            return job.owner;
        release_ended();
        if (own.spinning != Spinning::no && own.outstanding == 1 && own.left > forever / 2)
            stop(job.owner);
    }
}

void VirtualTime::stop(Entity number) {
    settle();
    set_left(number, 0);
    reckon();
}

void VirtualTime::set_left(std::uint32_t number, std::int64_t left) {
    Job& job = jobs_[number];
    const bool runs = job.event != 0;
    if (runs)
        account(number);
    job.left = left;
    if (runs)
        schedule(number);
}

inline void VirtualTime::own(std::uint32_t number, Entity owner) noexcept {
    jobs_[number].owner = owner;
    turns_[number].slice = (owner == prompt_ ? times_.base_slice_ns : worker_slice_ns) * Turn::ns;
}

inline void VirtualTime::start(std::uint32_t number, std::int64_t cpu_ns) {
    Job& job = jobs_[number];
    job.left = cpu_ns * one;
    if (core_.empty())
        return run(number);
    if (ended_ == number) {   // it goes on
        ended_ = nobody;
        Core& core = core_[job.core];
        job.since = served_;
        ++running_;
        // The loop enters the kernel to read its CPU clock, which checks its slice; or a tick comes just now.
        if ((is_prompt(job) || served_ % tick_ == 0) && core.queue.look_at(turns_, number))
            return change_turns(core, core.queue.pick(turns_, number, true));
        return schedule(number);
    }
    if (turns_[number].asleep) {   // it never left
        core_[job.core].queue.wake(turns_, number);
    } else {
        if (core_[job.core].running != free_core)
            if (const std::optional<std::uint32_t> idle = look_for_idle(job.core))
                job.core = *idle;
        average_load(core_[job.core]);
        core_[job.core].queue.join(turns_, number);
    }
    Core& core = core_[job.core];
    if (core.running == free_core)
        return occupy(number);
    ++queued_;
    queued_at_ = now_;
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
    schedule(running);   // now that another one queues, its slice counts
}

inline void VirtualTime::account(std::uint32_t number) noexcept {
    Job& job = jobs_[number];
    const std::int64_t served = served_ - std::exchange(job.since, served_);
    job.left -= served;
    turns_[number].ran += served / (one / Turn::ns);
}

inline void VirtualTime::change_turns(Core& core, std::uint32_t to) {
    if (core.running == to)
        return schedule(to);
    ++queued_;
    core.queue.put_back(core.running);
    leave(std::exchange(core.running, free_core));
    --queued_;
    occupy(to);
}

inline void VirtualTime::occupy(std::uint32_t number) {
    Core& core = core_[jobs_[number].core];
    core.running = number;
    core.queue.protect(turns_, number, true);
    ++occupied_;
    run(number);
}

inline void VirtualTime::run(std::uint32_t number) {
    ++running_;
    jobs_[number].since = served_;
    schedule(number);
}

inline void VirtualTime::schedule(std::uint32_t number) {
    Job& job = jobs_[number];
    std::int64_t at = job.since + job.left;
    if (!core_.empty() && core_[job.core].queue.size() > 1)
        at = std::min(at, (served_ / tick_ + 1) * tick_);
    job.event = ++sequence_;
    computing_.push({at, sequence_, number});
}

inline void VirtualTime::leave(std::uint32_t number) {
    Job& job = jobs_[number];
    job.event = 0;
    job.ran_until = now_;
    --occupied_;
    --running_;
}

void VirtualTime::look_at_slice(std::uint32_t number) {
    Core& core = core_[jobs_[number].core];
    if (core.queue.size() > 1 && occupied_ < core_.size())
        move(core, static_cast<std::uint32_t>(std::ranges::find(core_, free_core, &Core::running) - core_.begin()));
    if (core.queue.look_at(turns_, number))
        return change_turns(core, core.queue.pick(turns_, number, true));
    schedule(number);
}

inline void VirtualTime::release_ended() {
    if (ended_ == nobody)
        return;
    const std::uint32_t number = std::exchange(ended_, nobody), at = jobs_[number].core;
    if (core_.empty())
        return reckon();
    settle();
    if (jobs_[number].yields != 0)
        return yield_ended(number);
    jobs_[number].idles = false;
    Core& core = core_[at];
    core.running = free_core;
    --occupied_;
    average_load(core);
    core.queue.sleep(turns_, number);
    if (const std::uint32_t next = core.queue.pick(turns_, RunQueue::nobody, false); next != RunQueue::nobody) {
        --queued_;
        occupy(next);
    } else if (queued_ != 0 || now_ - queued_at_ < times_.tick_ns) {
        pull(at);
    }
    reckon();
}

void VirtualTime::yield_ended(std::uint32_t number) {
    Job& job = jobs_[number];
    Core& core = core_[job.core];
    --job.yields;
    job.idles = true;
    job.left = yielding_ns * one;
    core.queue.yield(turns_, number);
    ++running_;
    job.since = served_;
    change_turns(core, core.queue.pick(turns_, number, false));
    reckon();
}

void VirtualTime::set_to_work(std::uint32_t number, std::int64_t cpu_ns) {
    jobs_[number].idles = false;
    jobs_[number].yields = 0;
    set_left(number, cpu_ns * one);
}

void VirtualTime::average_load(Core& core) noexcept {
    if (jobs_.size() == pending_.size())   // no helper, so nobody asks
        return;
    const auto passed = static_cast<double>(now_ - std::exchange(core.load_at, now_));
    const double keeps = std::exp2(-passed / linux_scheduler::load_half_life_ns);
    core.load = keeps * core.load + (1 - keeps) * static_cast<double>(core.queue.size());
}

std::uint32_t VirtualTime::affine_core(const Job& woken, const Job& waker) noexcept {
    Core &own = core_[woken.core], &other = core_[waker.core];
    if (own.running == free_core || woken.core == waker.core)
        return woken.core;
    average_load(own);
    average_load(other);
    const double its_load = static_cast<double>(woken.ran_until - woken.woken_at) /
                            static_cast<double>(std::max<std::int64_t>(now_ - woken.woken_at, 1));
    return other.load + its_load < linux_scheduler::affine_bias * (own.load - its_load) ? waker.core : woken.core;
}

void VirtualTime::pull(std::uint32_t at) {
    core_[at].newidle.fell_idle(dice_, [&] {
        if (queued_ != 0)
            move(*std::ranges::max_element(core_, {}, [](const Core& core) { return core.queue.size(); }), at);
        return core_[at].running != free_core;
    });
}

void VirtualTime::move(Core& from, std::uint32_t at) {
    for (const std::uint32_t number : from.queue.threads()) {
        Job& job = jobs_[number];
        if (number == from.running || turns_[number].asleep || now_ - job.ran_until < times_.migration_cost_ns)
            continue;
        average_load(from);
        average_load(core_[at]);
        from.queue.leave(turns_, number);
        core_[at].queue.join(turns_, number, true);
        --queued_;
        job.core = at;
        return occupy(number);
    }
}

std::optional<std::uint32_t> VirtualTime::look_for_idle(std::uint32_t from) {
    const auto n = static_cast<double>(core_.size());
    if (now_ - window_since_ >= linux_scheduler::load_window_ns) {
        const auto passed = static_cast<double>(now_ - window_since_);
        const double keeps = std::exp2(-passed / linux_scheduler::load_half_life_ns);
        const double used = std::min((busy_ns_ / passed + n - cores_) / n, 1.0);   // including other processes
        utilization_ = keeps * utilization_ + (1 - keeps) * used;
        busy_ns_ = 0;
        window_since_ = now_;
    }
    const double most = n * (1 - linux_scheduler::imbalance_squared * utilization_ * utilization_);
    if (occupied_ == core_.size())
        return std::nullopt;
    for (std::uint32_t i = 1; i <= most; ++i)
        if (const std::uint32_t at = (from + i) % static_cast<std::uint32_t>(core_.size());
            core_[at].running == free_core)
            return at;
    return std::nullopt;
}

void VirtualTime::rebase() noexcept {                      // the order stays
    const std::int64_t before = served_ / tick_ * tick_;   // ticks stay where they are
    computing_.shift(before);
    for (std::size_t number = 0; number < jobs_.size(); ++number)
        if (Job& job = jobs_[number]; job.event != 0 || number == ended_)
            job.since -= before;
    served_ -= before;
}

inline void VirtualTime::settle() noexcept {
    served_ += (now_ - settled_at_) * rate_;
    busy_ns_ += static_cast<double>(now_ - settled_at_) * static_cast<double>(running_);
    settled_at_ = now_;
}

inline void VirtualTime::reckon() noexcept {
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
    const std::int64_t left = std::max<std::int64_t>(computing_.front().at - served_, 0);
    next_served_at_ = now_ + (rate_ == one ? (left + one - 1) / one : (left + rate_ - 1) / rate_);
}

}   // namespace drawpoint
