#include "pipeline/runtime/worker_pool.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/resource.h>

#if DRAWPOINT_HAS_TBB
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>
#endif

#include <drawpoint/pipeline/loader/machine/detail/worker_costs.hpp>

#include "pipeline/runtime/thread_scheduling.hpp"

namespace drawpoint {
namespace {

/// While this lives, runs the calling thread under SCHED_BATCH, if it was under SCHED_OTHER: such a thread does not
/// preempt the thread that wakes it. Otherwise a worker woken by a given-back batch would run instead of the training
/// loop. It also asks for a long time slice: a thread under SCHED_OTHER that wakes, like the training loop's, then
/// preempts a worker at once, and workers preempt each other less often.
class YieldsWhenWoken {
public:
    // If the system refuses, the loader is only slower.
    YieldsWhenWoken() noexcept {
        ThreadScheduling own = usual_scheduling();
        own.slice_ns = worker_slice_ns;
        own.policy = SCHED_BATCH;
        was_usual_ = own.size != 0 && schedule_thread(own);
    }
    ~YieldsWhenWoken() {
        if (!was_usual_)
            return;
        ThreadScheduling usual{.size = sizeof usual, .policy = SCHED_OTHER, .nice = ::getpriority(PRIO_PROCESS, 0)};
        schedule_thread(usual);
    }
    YieldsWhenWoken(const YieldsWhenWoken&) = delete;
    YieldsWhenWoken& operator=(const YieldsWhenWoken&) = delete;

private:
    bool was_usual_;
};

#if DRAWPOINT_HAS_TBB
/// State that a crew's tasks share with it. A task that begins to run after the crew is gone does nothing.
struct Pumps {
    explicit Pumps(CrewWork& to_do) noexcept : work{&to_do} {}

    std::mutex mutex;   // guards `closed`, and beginning a task while it is false
    bool closed = false;
    std::atomic<std::size_t> running{0};
    CrewWork* work;

    void pump(std::size_t worker) noexcept {
        {
            const std::lock_guard lock{mutex};
            if (closed)
                return;
            running.fetch_add(1, std::memory_order_relaxed);
        }
        {
            const YieldsWhenWoken yields;   // ends before join() returns: then the thread is oneTBB's again
            work->work(worker);
        }
        running.fetch_sub(1, std::memory_order_release);
        running.notify_all();
    }

    void join() noexcept {
        {
            const std::lock_guard lock{mutex};
            closed = true;
        }
        for (std::size_t left = running.load(std::memory_order_acquire); left != 0;
             left = running.load(std::memory_order_acquire))
            running.wait(left, std::memory_order_acquire);
    }
};

/// Whether the system allows this number of threads at once, each with a stack as large as oneTBB's and a heap: oneTBB
/// ends the program if a thread of its own cannot be started. Throws std::bad_alloc.
bool system_has(std::size_t threads) {
    constexpr std::size_t stack_bytes = std::size_t{4} << 20;
    struct Probe {
        std::atomic<bool> counted{false}, lacks_heap{false};
    } probe;
    const auto wait = [](void* argument) -> void* {
        Probe& mine = *static_cast<Probe*>(argument);
        void* const byte = ::operator new(1, std::nothrow);
        if (byte == nullptr)
            mine.lacks_heap.store(true);
        ::operator delete(byte);
        mine.counted.wait(false);
        return nullptr;
    };
    std::vector<pthread_t> there;
    there.reserve(threads);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    std::size_t usual_bytes = 0;
    ::pthread_attr_getstacksize(&attributes, &usual_bytes);
    ::pthread_attr_setstacksize(&attributes, std::max(usual_bytes, stack_bytes));
    for (pthread_t thread; there.size() < threads && ::pthread_create(&thread, &attributes, wait, &probe) == 0;)
        there.push_back(thread);
    ::pthread_attr_destroy(&attributes);
    probe.counted.store(true);
    probe.counted.notify_all();
    for (const pthread_t thread : there)
        ::pthread_join(thread, nullptr);
    return there.size() == threads && !probe.lacks_heap.load();
}

#endif
}   // namespace

struct WorkerPool::Impl {
    WorkerThreads kind;
#if DRAWPOINT_HAS_TBB
    std::mutex mutex;
    std::size_t workers = 0;   // in all living crews
    std::unique_ptr<oneapi::tbb::global_control> parallelism;

    void add(std::ptrdiff_t more) {
        using oneapi::tbb::global_control;
        const std::lock_guard lock{mutex};
        const std::size_t all = workers + static_cast<std::size_t>(more);
        // A pump occupies its thread, so the pumps come on top of what the program's own TBB code may use. The smallest
        // of all living controls applies, so the new one is made before the old one goes: no worker is recalled in
        // between.
        const auto others = static_cast<std::size_t>(oneapi::tbb::info::default_concurrency());
        auto next = all == 0 ? nullptr
                             : std::make_unique<global_control>(global_control::max_allowed_parallelism, all + others);
        parallelism = std::move(next);
        workers = all;
    }

    /// Whether oneTBB has a thread for every pump of every crew: the program may have a smaller control of its own.
    bool fits() {
        using oneapi::tbb::global_control;
        const std::lock_guard lock{mutex};
        return global_control::active_value(global_control::max_allowed_parallelism) > workers;
    }
#endif
};

struct Crew::Impl {
    std::vector<std::thread> threads;
#if DRAWPOINT_HAS_TBB
    WorkerPool::Impl* pool = nullptr;
    std::size_t added = 0, workers = 0;   // workers added to the pool; pumps enqueued
    std::shared_ptr<Pumps> pumps;
    std::unique_ptr<oneapi::tbb::task_arena> arena;
#endif
};

Crew::Crew() noexcept = default;
Crew::Crew(std::unique_ptr<Impl> impl) noexcept : impl_{std::move(impl)} {}
Crew::Crew(Crew&&) noexcept = default;

Crew& Crew::operator=(Crew&& other) noexcept {
    if (this != &other) {
        join();
        impl_ = std::move(other.impl_);
    }
    return *this;
}

Crew::~Crew() { join(); }

std::size_t Crew::size() const noexcept {
    if (!impl_)
        return 0;
#if DRAWPOINT_HAS_TBB
    if (impl_->pumps)
        return impl_->workers;
#endif
    return impl_->threads.size();
}

void Crew::join() noexcept {
    if (!impl_)
        return;
    for (std::thread& thread : impl_->threads)
        thread.join();
#if DRAWPOINT_HAS_TBB
    if (impl_->pumps) {
        impl_->pumps->join();
        impl_->arena.reset();
        impl_->pool->add(-static_cast<std::ptrdiff_t>(impl_->added));
    }
#endif
    impl_.reset();
}

WorkerPool::WorkerPool(WorkerThreads kind) : impl_{std::make_unique<Impl>()} { impl_->kind = kind; }
WorkerPool::~WorkerPool() = default;

Crew WorkerPool::start(std::size_t workers, CrewWork& work) {
    auto crew = std::make_unique<Crew::Impl>();
#if DRAWPOINT_HAS_TBB
    // Twice the number, because the system may count threads that were just joined for a little longer.
    if (impl_->kind == WorkerThreads::arena && system_has(2 * workers)) {
        auto pumps = std::make_shared<Pumps>(work);
        // No slot is reserved for the thread that makes the arena, as it never works there.
        auto arena = std::make_unique<oneapi::tbb::task_arena>(static_cast<int>(workers), 0);
        impl_->add(static_cast<std::ptrdiff_t>(workers));
        if (impl_->fits()) {
            crew->pumps = std::move(pumps);
            crew->arena = std::move(arena);
            crew->pool = impl_.get();
            crew->added = workers;
            try {
                for (; crew->workers < workers; ++crew->workers)
                    crew->arena->enqueue([pumps = crew->pumps, worker = crew->workers] { pumps->pump(worker); });
            } catch (const std::exception&) {   // no memory for more pumps: go on with those there are
            }
            return Crew{std::move(crew)};
        }
        // Pumps would wait for each other's threads: use plain threads.
        impl_->add(-static_cast<std::ptrdiff_t>(workers));
    }
#endif
    crew->threads.reserve(workers);
    for (std::size_t worker = 0; worker < workers; ++worker) {
        try {
            crew->threads.emplace_back([&work, worker] {
                const YieldsWhenWoken yields;
                work.work(worker);
            });
        } catch (const std::exception&) {
            break;   // the system refuses more threads: go on with those there are
        }
    }
    return Crew{std::move(crew)};
}

}   // namespace drawpoint
