#include "simulation/simulation.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include <asio/detail/call_stack.hpp>
#include <asio/detail/thread_context.hpp>
#include <asio/detail/thread_info_base.hpp>

namespace __cxxabiv1 {
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals() noexcept;
}   // namespace __cxxabiv1

namespace drawpoint::simulation {
namespace {

constexpr std::size_t most_threads = 16, stack_bytes = 256u << 10;
constexpr int schedstat = std::numeric_limits<int>::max();   // a descriptor that no process has
/// How time passes.
struct Pace {
    std::int64_t reading_ns = 2'000, idle_ns = 100'000, most_idle_ns = 100'000'000;
    std::uint64_t most_steps = 1'000'000;
    bool is_exact = false;
};

/// What a thread has of its own in libstdc++: exceptions that are being handled.
struct Exceptions {
    void* caught = nullptr;
    unsigned uncaught = 0;
};

/// What it has of its own in Asio: the event loops that it runs. An explicit instantiation may name private members.
template <auto* member>
struct LoopsOf {
    friend auto& loops_run() { return *member; }
};
auto& loops_run();
template struct LoopsOf<&asio::detail::call_stack<asio::detail::thread_context, asio::detail::thread_info_base>::top_>;
template <class T>
T* pointee(asio::detail::tss_ptr<T>& pointer) {
    return pointer;
}
using Loops = decltype(pointee(loops_run()));

struct Thread {
    enum class State : std::uint8_t { none, ready, waits, sleeps, idle, ended } state = State::none;
    const void* key = nullptr;   // what it waits for
    std::int64_t until_ns = 0;   // how long it sleeps
    std::int64_t cpu_ns = 0;
    std::uint64_t priority = 0;
    bool begun = false;
    jmp_buf place;
    Exceptions exceptions;
    Loops loops = nullptr;
    void* (*function)(void*) = nullptr;
    void* argument = nullptr;
    char* stack = nullptr;
};

class Scheduler {
public:
    void run(std::uint64_t seed, const char* what, const Pace& pace, std::int64_t begin_ns,
             const std::function<void()>& program) {
        pace_ = pace;
        random_ = seed * 0x9E3779B97F4A7C15 + 0x2545F4914F6CDD1D;
        what_ = what;
        by_priority_ = !pace.is_exact && below(2) == 0;
        queued_share_ = pace.is_exact ? 0 : static_cast<std::int64_t>(below(3));
        for (Thread& thread : threads_)
            thread.state = Thread::State::none;
        now_ns_ = begin_ns;
        steps_ = history_ = 0;
        used_ = 0;
        idled_ns_ = 0;
        idler_ = most_threads;
        has_looked_ = false;
        for (std::uint64_t& change : changes_)
            change = pace.is_exact ? 0 : below(300);
        active_ = add();
        threads_[0].begun = true;
        is_on = true;
        program();
        is_on = false;
        for (const Thread& thread : threads_)
            if (&thread != &threads_[0] && thread.state != Thread::State::none && thread.state != Thread::State::ended)
                fail("a thread was not joined");
    }

    std::uint64_t below(std::uint64_t limit) noexcept {
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        return (random_ >> 11) % limit;
    }

    void yield() noexcept { choose(); }

    void sleep_for(std::int64_t ns) noexcept {
        me().until_ns = now_ns_ + ns;
        leave(Thread::State::sleeps);
    }

    void compute(std::int64_t ns) noexcept {
        me().cpu_ns += ns;
        sleep_for(ns);
    }

    void idle() noexcept { leave(Thread::State::idle); }

    /// A mutex is taken, maybe by a thread that is not simulated.
    void wait_for_mutex(const void* mutex) noexcept {
        if (pace_.is_exact)
            sleep_for(pace_.reading_ns);
        else
            wait_for(mutex);
    }

    void wait_for(const void* key) noexcept {
        me().key = key;
        leave(Thread::State::waits);
    }

    std::size_t wake(const void* key, std::size_t most) noexcept {
        std::size_t woken = 0;
        const std::size_t from = below(most_threads);   // no order among those that wait
        for (std::size_t i = 0; i < most_threads && woken < most; ++i) {
            Thread& thread = threads_[(from + i) % most_threads];
            if (thread.state == Thread::State::waits && thread.key == key) {
                thread.state = Thread::State::ready;
                ++woken;
            }
        }
        return woken;
    }

    std::size_t start(void* (*function)(void*), void* argument) noexcept {
        const std::size_t number = add();
        Thread& thread = threads_[number];
        thread.begun = false;
        thread.function = function;
        thread.argument = argument;
        thread.exceptions = {};
        thread.loops = nullptr;
        if (thread.stack == nullptr)
            thread.stack = static_cast<char*>(::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        choose();
        return number;
    }

    void join(std::size_t number) noexcept {
        while (threads_[number].state != Thread::State::ended)
            wait_for(&threads_[number]);
        threads_[number].state = Thread::State::none;
        choose();
    }

    std::int64_t now_ns() noexcept {
        now_ns_ += pace_.reading_ns;
        me().cpu_ns += pace_.reading_ns;
        if (below(8) == 0)
            choose();
        return now_ns_;
    }
    [[nodiscard]] std::int64_t time_ns() const noexcept { return now_ns_; }
    [[nodiscard]] std::size_t cores() const noexcept { return pace_.is_exact ? exact_cores : 2; }
    /// CPU time of the thread; as far as that is simulated.
    std::int64_t cpu_ns() noexcept { return pace_.is_exact ? me().cpu_ns : now_ns(); }
    /// How long a thread has waited for a core: for each nanosecond that it ran none, one or two.
    [[nodiscard]] std::int64_t queued_ns() const noexcept { return queued_share_ * now_ns_; }
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
    [[nodiscard]] std::uint64_t history() const noexcept { return history_; }

    static inline thread_local bool is_on = false;   // only on the thread that simulates

private:
    Thread& me() noexcept { return threads_[active_]; }

    std::size_t add() noexcept {
        for (std::size_t i = 0; i < most_threads; ++i)
            if (threads_[i].state == Thread::State::none) {
                threads_[i].state = Thread::State::ready;
                threads_[i].priority = 1000 + below(1000);
                threads_[i].cpu_ns = 0;
                used_ = std::max(used_, i + 1);
                return i;
            }
        fail("too many threads");
    }

    void leave(Thread::State state) noexcept {
        me().state = state;
        choose();
    }

    /// Chooses the thread that goes on, and goes on with it. Returns when this one is chosen again.
    void choose() noexcept {
        if (++steps_ == pace_.most_steps)
            fail("no end");
        for (const std::uint64_t change : changes_)
            if (change == steps_)
                me().priority = below(1000);   // below all that have not had this
        for (;;) {
            std::array<std::size_t, most_threads> ready;
            std::size_t count = 0, idle = most_threads;
            std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
            for (std::size_t i = 0; i < used_; ++i) {
                Thread& thread = threads_[i];
                if (thread.state == Thread::State::sleeps && thread.until_ns <= now_ns_)
                    thread.state = Thread::State::ready;
                if (thread.state == Thread::State::sleeps)
                    first_ns = std::min(first_ns, thread.until_ns);
                if (thread.state == Thread::State::ready)
                    ready[count++] = i;
                if (thread.state == Thread::State::idle)
                    idle = i;
            }
            // The one that is idle looks now and then, and when nobody else can do anything.
            const bool looks_now = pace_.is_exact && count == 0 && !std::exchange(has_looked_, true);
            if (idle != most_threads &&
                (looks_now || (count == 0 ? first_ns > now_ns_ + pace_.idle_ns : below(4) == 0))) {
                if (count == 0 && !looks_now) {
                    now_ns_ += pace_.idle_ns;
                    idled_ns_ += pace_.idle_ns;
                    if (idled_ns_ > pace_.most_idle_ns)
                        fail("all threads wait");
                }
                threads_[idle].state = Thread::State::ready;
                idler_ = idle;
                return go_on(idle);
            }
            if (count == 0) {
                if (first_ns == std::numeric_limits<std::int64_t>::max())
                    fail("all threads wait");
                now_ns_ = first_ns;
                continue;
            }
            std::size_t chosen = ready[below(count)];
            if (by_priority_)
                for (std::size_t i = 0; i < count; ++i)
                    if (threads_[ready[i]].priority > threads_[chosen].priority)
                        chosen = ready[i];
            if (chosen == active_ && by_priority_ && below(16) == 0)   // nobody spins for ever
                chosen = ready[below(count)];
            if (chosen != idler_) {
                idled_ns_ = 0;
                has_looked_ = false;
            }
            return go_on(chosen);
        }
    }

    void go_on(std::size_t chosen) noexcept {
        history_ = (history_ ^ chosen) * 0x100000001B3;
        if (chosen == active_)
            return;
        auto& exceptions = *reinterpret_cast<Exceptions*>(__cxxabiv1::__cxa_get_globals());
        if (_setjmp(me().place) != 0)
            return;
        me().exceptions = exceptions;
        me().loops = loops_run();
        active_ = chosen;
        exceptions = me().exceptions;
        loops_run() = me().loops;
        if (std::exchange(me().begun, true))
            _longjmp(me().place, 1);
        ucontext_t begin;
        ::getcontext(&begin);
        begin.uc_stack.ss_sp = me().stack;
        begin.uc_stack.ss_size = stack_bytes;
        ::makecontext(&begin, &Scheduler::enter, 0);
        ::setcontext(&begin);
    }

    static void enter() {
        Scheduler& scheduler = the();
        scheduler.me().function(scheduler.me().argument);
        scheduler.wake(&scheduler.me(), most_threads);
        scheduler.leave(Thread::State::ended);
    }

    [[noreturn]] void fail(const char* why) noexcept {
        std::fprintf(stderr, "%s: %s after %llu steps\n", what_, why, static_cast<unsigned long long>(steps_));
        for (std::size_t i = 0; i < most_threads; ++i)
            if (threads_[i].state != Thread::State::none) {
                constexpr std::array<const char*, 6> states{"none", "ready", "waits", "sleeps", "idle", "ended"};
                std::fprintf(stderr, "  thread %zu %s\n", i, states[static_cast<std::size_t>(threads_[i].state)]);
            }
        std::fflush(stderr);
        ::_exit(3);
    }

    std::array<Thread, most_threads> threads_{};
    std::array<std::uint64_t, 3> changes_{};   // the steps at which a thread loses its priority
    std::size_t active_ = 0, idler_ = 0;       // the running one; the last one that was idle
    std::size_t used_ = 0;                     // of threads_; the others are none
    std::uint64_t random_ = 1, steps_ = 0, history_ = 0;
    std::int64_t now_ns_ = 0, idled_ns_ = 0, queued_share_ = 0;
    const char* what_ = "";
    Pace pace_;
    bool by_priority_ = false, has_looked_ = false;

public:
    static Scheduler& the() noexcept {
        static Scheduler scheduler;
        return scheduler;
    }
};

template <class Function>
Function original(const char* name) noexcept {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}   // namespace

void run(std::uint64_t seed, const char* what, const std::function<void()>& program) {
    Scheduler::the().run(seed, what, {}, 1'000'000'000, program);
}
void run_exactly(std::uint64_t seed, const char* what, const std::function<void()>& program) {
    constexpr Pace pace{.reading_ns = 100,
                        .idle_ns = 20'000,
                        .most_idle_ns = 100'000'000'000,
                        .most_steps = std::uint64_t{1} << 40,
                        .is_exact = true};
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    Scheduler::the().run(seed, what, pace, now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec, program);
}
std::uint64_t below(std::uint64_t limit) noexcept { return Scheduler::the().below(limit); }
void yield() noexcept { Scheduler::the().yield(); }
void sleep_for(std::int64_t ns) noexcept { Scheduler::the().sleep_for(ns); }
void compute(std::int64_t ns) noexcept { Scheduler::the().compute(ns); }
std::int64_t now_ns() noexcept { return Scheduler::the().time_ns(); }
void idle() noexcept { Scheduler::the().idle(); }
std::uint64_t steps() noexcept { return Scheduler::the().steps(); }
std::uint64_t history() noexcept { return Scheduler::the().history(); }

}   // namespace drawpoint::simulation

// ---- in place of the C library's ----

using drawpoint::simulation::original;
using drawpoint::simulation::Scheduler;

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    static const auto lock = original<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
    if (!Scheduler::is_on)
        return lock(mutex);
    Scheduler::the().yield();
    while (::pthread_mutex_trylock(mutex) != 0)
        Scheduler::the().wait_for_mutex(mutex);
    return 0;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
    static const auto unlock = original<int (*)(pthread_mutex_t*)>("pthread_mutex_unlock");
    const int result = unlock(mutex);
    if (Scheduler::is_on) {
        Scheduler::the().wake(mutex, 1);
        Scheduler::the().yield();
    }
    return result;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    static const auto wait = original<int (*)(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
    if (!Scheduler::is_on)
        return wait(condition, mutex);
    static const auto unlock = original<int (*)(pthread_mutex_t*)>("pthread_mutex_unlock");
    unlock(mutex);
    Scheduler::the().wake(mutex, 1);
    Scheduler::the().wait_for(condition);
    return pthread_mutex_lock(mutex);
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
    static const auto signal = original<int (*)(pthread_cond_t*)>("pthread_cond_signal");
    if (Scheduler::is_on)
        Scheduler::the().wake(condition, 1);
    return signal(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
    static const auto broadcast = original<int (*)(pthread_cond_t*)>("pthread_cond_broadcast");
    if (Scheduler::is_on)
        Scheduler::the().wake(condition, SIZE_MAX);
    return broadcast(condition);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
    static const auto create =
        original<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
    if (!Scheduler::is_on)
        return create(thread, attributes, function, argument);
    *thread = Scheduler::the().start(function, argument);
    return 0;
}

int pthread_join(pthread_t thread, void** result) {
    static const auto join = original<int (*)(pthread_t, void**)>("pthread_join");
    if (!Scheduler::is_on)
        return join(thread, result);
    Scheduler::the().join(thread);
    return 0;
}

int sched_yield() noexcept {
    static const auto yield = original<int (*)()>("sched_yield");
    if (!Scheduler::is_on)
        return yield();
    Scheduler::the().yield();
    return 0;
}

int clock_gettime(clockid_t clock, timespec* now) noexcept {
    static const auto read = original<int (*)(clockid_t, timespec*)>("clock_gettime");
    if (!Scheduler::is_on)
        return read(clock, now);
    const bool of_thread = clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID;
    const std::int64_t ns = of_thread ? Scheduler::the().cpu_ns() : Scheduler::the().now_ns();
    *now = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    return 0;
}

/// The machine has a few cores, no quota, and no files but the account of what a thread waited for a core.
int open(const char* name, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    static const auto open_file = original<int (*)(const char*, int, ...)>("open");
    if (!Scheduler::is_on)
        return open_file(name, flags, mode);
    if (std::string_view{name} == "/proc/thread-self/schedstat")
        return drawpoint::simulation::schedstat;
    errno = ENOENT;
    return -1;
}

ssize_t pread(int file, void* bytes, size_t size, off_t from) {
    static const auto read_at = original<ssize_t (*)(int, void*, size_t, off_t)>("pread");
    if (!Scheduler::is_on || file != drawpoint::simulation::schedstat)
        return read_at(file, bytes, size, from);
    return std::snprintf(static_cast<char*>(bytes), size, "1 %lld 1\n",
                         static_cast<long long>(Scheduler::the().queued_ns()));
}

int close(int file) {
    static const auto close_file = original<int (*)(int)>("close");
    return file == drawpoint::simulation::schedstat ? 0 : close_file(file);
}

FILE* fopen64(const char* name, const char* mode) {
    static const auto open_file = original<FILE* (*)(const char*, const char*)>("fopen64");
    if (!Scheduler::is_on)
        return open_file(name, mode);
    errno = ENOENT;
    return nullptr;
}

int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t* cores) noexcept {
    static const auto affinity = original<int (*)(pid_t, size_t, cpu_set_t*)>("sched_getaffinity");
    if (!Scheduler::is_on)
        return affinity(process, bytes, cores);
    CPU_ZERO_S(bytes, cores);
    for (std::size_t core = 0; core < Scheduler::the().cores(); ++core)
        CPU_SET_S(core, bytes, cores);
    return 0;
}

/// No descriptor ever becomes ready: what wakes the event loop is the simulated futex.
int epoll_wait(int set, epoll_event* events, int most, int timeout_ms) {
    static const auto wait = original<int (*)(int, epoll_event*, int, int)>("epoll_wait");
    return Scheduler::is_on ? 0 : wait(set, events, most, timeout_ms);
}

/// Asio then asks the clock itself.
int timerfd_create(int, int) noexcept {
    errno = ENOSYS;
    return -1;
}

long syscall(long number, ...) noexcept {
    va_list arguments;
    va_start(arguments, number);
    std::array<long, 6> values{};
    for (long& value : values)
        value = va_arg(arguments, long);
    va_end(arguments);
    static const auto call = original<long (*)(long, ...)>("syscall");
    if (!Scheduler::is_on)
        return call(number, values[0], values[1], values[2], values[3], values[4], values[5]);
    if (number == SYS_sched_getattr || number == SYS_sched_setattr) {   // there is one real thread
        errno = ENOSYS;
        return -1;
    }
    if (number != SYS_futex)
        return call(number, values[0], values[1], values[2], values[3], values[4], values[5]);
    const auto* const word = reinterpret_cast<const int*>(values[0]);
    switch (static_cast<int>(values[1]) & ~FUTEX_PRIVATE_FLAG) {
    case FUTEX_WAIT:
        if (*word != static_cast<int>(values[2])) {
            errno = EAGAIN;
            return -1;
        }
        Scheduler::the().wait_for(word);
        return 0;
    case FUTEX_WAKE: {
        const auto woken = static_cast<long>(Scheduler::the().wake(word, static_cast<std::uint32_t>(values[2])));
        Scheduler::the().yield();
        return woken;
    }
    default: errno = ENOSYS; return -1;
    }
}

}   // extern "C"
