#include "pipeline/runtime/worker_pool.hpp"

#include <exception>
#include <functional>
#include <utility>

#include <sched.h>

#if DRAWPOINT_HAS_TBB
#include <oneapi/tbb/task_arena.h>
#endif

#include <drawpoint/pipeline/loader/machine/detail/worker_costs.hpp>

#include "pipeline/runtime/thread_scheduling.hpp"

namespace drawpoint {
namespace {

/// Puts the calling thread under SCHED_BATCH, if it is under SCHED_OTHER: such a thread does not preempt the thread
/// that wakes it. Otherwise a worker woken by a given-back batch would run instead of the training loop. It also asks
/// for a long time slice: a thread under SCHED_OTHER that wakes, like the training loop's, then preempts a worker at
/// once, and workers preempt each other less often. If the system refuses, the loader is only slower.
void yield_when_woken() noexcept {
    ThreadScheduling own = usual_scheduling();
    own.slice_ns = worker_slice_ns;
    own.policy = SCHED_BATCH;
    if (own.size != 0)
        schedule_thread(own);
}

#if DRAWPOINT_HAS_TBB
/// Calls `work` in an arena of one thread, the calling one.
void work_alone(CrewWork& work, std::size_t worker) noexcept {
    bool begun = false;
    try {
        oneapi::tbb::task_arena{1}.execute([&] {
            begun = true;
            work.work(worker);
        });
    } catch (const std::exception&) {   // no memory for an arena
        if (!begun)
            work.work(worker);
    }
}
#endif

void run_worker(WorkerThreads kind, CrewWork& work, std::size_t worker) noexcept {
    yield_when_woken();
#if DRAWPOINT_HAS_TBB
    if (kind == WorkerThreads::arena)
        return work_alone(work, worker);
#endif
    (void)kind;
    work.work(worker);
}

}   // namespace

Crew& Crew::operator=(Crew&& other) noexcept {
    if (this != &other) {
        join();
        threads_ = std::move(other.threads_);
    }
    return *this;
}

void Crew::join() noexcept {
    for (std::thread& thread : threads_)
        thread.join();
    threads_.clear();
}

Crew WorkerPool::start(std::size_t workers, CrewWork& work) const {
    Crew crew;
    crew.threads_.reserve(workers);
    for (std::size_t worker = 0; worker < workers; ++worker) {
        try {
            crew.threads_.emplace_back(run_worker, kind_, std::ref(work), worker);
        } catch (const std::exception&) {
            break;   // the system refuses more threads: go on with those there are
        }
    }
    return crew;
}

}   // namespace drawpoint
