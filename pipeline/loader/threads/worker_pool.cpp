#include "pipeline/loader/threads/worker_pool.hpp"

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

#include <drawpoint/pipeline/loader/machine/worker_costs.hpp>

#include "pipeline/loader/threads/thread_scheduling.hpp"

namespace drawpoint {
namespace {

/// Makes the calling thread a batch thread of the system's scheduler while this lives, if it is a usual one: such a thread does
/// not take the core of the thread that wakes it. A worker woken by a batch given back would else run in the training loop's place.
/// It asks for long slices: a usual thread that wakes, as the training loop's does, takes the core of one with a longer slice at
/// once, and workers change places less often.
class YieldsWhenWoken {
public:
    // Refused: the worker is no more than slower.
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
/// What a pump task shares with its crew: it may come to run long after the crew has gone, and then does nothing.
struct Pumps {
    explicit Pumps(CrewWork& to_do) noexcept : work{&to_do} {}

    std::mutex mutex;   // of `closed`, and of beginning while it is not
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
            const YieldsWhenWoken yields;   // before join(): the thread is TBB's again after it
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

/// Whether the system gives so many threads at once, each with a stack as large as TBB's and a heap: TBB's threads start each
/// other, and one that the system refuses ends the program. Throws std::bad_alloc.
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
    std::size_t workers = 0;   // of all living crews
    std::unique_ptr<oneapi::tbb::global_control> parallelism;

    void add(std::ptrdiff_t more) {
        using oneapi::tbb::global_control;
        const std::lock_guard lock{mutex};
        const std::size_t all = workers + static_cast<std::size_t>(more);
        // Room for the pumps beside what the program's own TBB code would have: a pump keeps its thread. The smallest of all
        // living controls holds, so the new one first: no worker is called back in between.
        const auto others = static_cast<std::size_t>(oneapi::tbb::info::default_concurrency());
        auto next = all == 0 ? nullptr
                             : std::make_unique<global_control>(global_control::max_allowed_parallelism, all + others);
        parallelism = std::move(next);
        workers = all;
    }

    /// Whether TBB really has a thread for every pump of every crew: the program may hold a smaller control.
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
    std::size_t added = 0, workers = 0;   // to the pool; pumps enqueued
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
    // Twice as many: a thread that was joined may count against the system's limit for a moment more.
    if (impl_->kind == WorkerThreads::arena && system_has(2 * workers)) {
        auto pumps = std::make_shared<Pumps>(work);
        // No slot is reserved for the thread that makes the arena: it never works there.
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
            } catch (const std::exception&) {   // no memory for more: those there do
            }
            return Crew{std::move(crew)};
        }
        impl_->add(-static_cast<std::ptrdiff_t>(
            workers));   // pumps would keep each other from running, or not run: plain threads then
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
            break;   // no more threads to be had: those there do
        }
    }
    return Crew{std::move(crew)};
}

}   // namespace drawpoint
