#include "instrumentation/sampling/thread_timers.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "instrumentation/sampling/process.hpp"
#include "instrumentation/sampling/stack_walk.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DRAWPOINT_TSAN
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(DRAWPOINT_TSAN)
#include <sanitizer/tsan_interface.h>
#else
inline void __tsan_acquire(void*) noexcept {}
inline void __tsan_release(void*) noexcept {}
#endif

namespace drawpoint {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_frames = 127;
constexpr auto longest_farewell = 100ms;

/// Ring of samples that a thread's signal handler writes and the sampler's thread reads. A sample is several words:
/// [count, whether in a system call], time, weight, addresses.
class TimerRing {
public:
    TimerRing(std::uint32_t bytes, std::uint32_t max_depth, std::int64_t period_ns)
        : words_(std::bit_ceil(std::size_t{bytes} / sizeof(std::uint64_t))),
          depth_{std::min<std::size_t>(max_depth, most_frames)},
          period_ns_{period_ns} {}

    // ---- called by the sampled thread, in its signal handler: no lock, no allocation

    void sample(const void* context) noexcept {
        const std::int64_t cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
        credit_ns_ += std::max<std::int64_t>(0, cpu_ns - seen_cpu_ns_.load(std::memory_order_relaxed));
        const Interrupted at = interrupted_by(context);
        // A thread inside a system call probably slept, so it gets a sample only if it has used a whole period of CPU
        // time. Otherwise that time is added to the next sample; so is the little used before a tick that came late
        // because the thread had no core.
        if (credit_ns_ >= (at.in_system_call ? period_ns_ : period_ns_ / 2)) {
            write(at);
            credit_ns_ = 0;
        }
        const std::int64_t end_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
        own_ns_.store(own_ns_.load(std::memory_order_relaxed) + end_ns - cpu_ns, std::memory_order_relaxed);
        seen_cpu_ns_.store(end_ns, std::memory_order_relaxed);
        ticks_.store(ticks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    void say_farewell() noexcept { left_.store(true, std::memory_order_release); }

    // ---- called by the sampler's thread

    std::uint64_t drain(RawSink& sink) {
        const std::uint64_t head = head_.load(std::memory_order_acquire);
        std::uint64_t tail = tail_.load(std::memory_order_relaxed);
        while (tail != head) {
            const std::uint64_t count = word(tail) & 0xffffu;
            std::array<std::uint64_t, most_frames> addresses;
            for (std::size_t i = 0; i < count; ++i)
                addresses[i] = word(tail + 3 + i);
            sink.take({static_cast<std::int64_t>(word(tail + 1)), static_cast<std::int64_t>(word(tail + 2)),
                       word(tail) >> 16 != 0, std::span{addresses}.first(count)});
            tail += 3 + count;
            tail_.store(tail, std::memory_order_release);
        }
        find_stack();
        const std::uint64_t lost = lost_.load(std::memory_order_relaxed);
        return lost - std::exchange(told_lost_, lost);
    }

    void begin_at(std::int64_t cpu_ns) noexcept { seen_cpu_ns_.store(cpu_ns, std::memory_order_relaxed); }
    [[nodiscard]] std::int64_t own_ns() const noexcept { return own_ns_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t ticks() const noexcept { return ticks_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool farewell_said() const noexcept { return left_.load(std::memory_order_acquire); }

private:
    [[nodiscard]] std::uint64_t& word(std::uint64_t at) noexcept { return words_[at & (words_.size() - 1)]; }

    void write(const Interrupted& at) noexcept {
        std::array<std::uint64_t, most_frames> addresses;
        const std::size_t count = walk_stack(at, stack_end(at.sp), std::span{addresses}.first(depth_));
        const std::uint64_t head = head_.load(std::memory_order_relaxed);
        if (head + 3 + count - tail_.load(std::memory_order_acquire) > words_.size()) {
            lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            return;
        }
        word(head) = count | (at.in_system_call ? 1u << 16 : 0u);
        word(head + 1) = static_cast<std::uint64_t>(read_clock(CLOCK_MONOTONIC));
        word(head + 2) = static_cast<std::uint64_t>(credit_ns_);
        for (std::size_t i = 0; i < count; ++i)
            word(head + 3 + i) = addresses[i];
        head_.store(head + 3 + count, std::memory_order_release);
    }

    /// The end of the stack that contains `sp`, if the sampler's thread has found it already; else 0, and asks that
    /// thread to find it.
    std::uint64_t stack_end(std::uint64_t sp) noexcept {
        const std::uint64_t end = stack_end_.load(std::memory_order_acquire);
        if (end != 0 && stack_begin_.load(std::memory_order_acquire) <= sp && sp < end &&
            stack_end_.load(std::memory_order_acquire) == end)
            return stack_limit(sp, end);
        unknown_sp_.store(sp, std::memory_order_release);
        return 0;
    }

    void find_stack() {
        const std::uint64_t sp = unknown_sp_.exchange(0, std::memory_order_acq_rel);
        if (sp == 0)
            return;
        const Mapping stack = mapping_of(sp);
        stack_end_.store(0, std::memory_order_release);
        stack_begin_.store(stack.begin, std::memory_order_release);
        stack_end_.store(stack.end, std::memory_order_release);
    }

    std::vector<std::uint64_t> words_;   // a power of two
    std::size_t depth_;
    std::int64_t period_ns_;
    std::int64_t credit_ns_ = 0;   // used by the handler only: CPU time not yet in any sample
    std::uint64_t told_lost_ = 0;
    std::atomic<std::uint64_t> head_ = 0, tail_ = 0, lost_ = 0, ticks_ = 0;
    std::atomic<std::int64_t> seen_cpu_ns_ = 0, own_ns_ = 0;
    std::atomic<std::uint64_t> stack_begin_ = 0, stack_end_ = 0, unknown_sp_ = 0;
    std::atomic<bool> left_ = false;
};

void on_signal(int, siginfo_t* info, void* context) {
    const int error = errno;
    auto* const ring = static_cast<TimerRing*>(info->si_value.sival_ptr);
    const bool farewell = info->si_code == SI_QUEUE && info->si_pid == getpid();
    if (info->si_code == SI_TIMER || farewell) {
        __tsan_acquire(ring);   // the ring's address passes through the kernel, which ThreadSanitizer cannot see
        if (farewell)
            ring->say_farewell();
        else
            ring->sample(context);
        __tsan_release(ring);
    }
    errno = error;
}

itimerspec every(std::int64_t period_ns, std::int64_t first_ns) noexcept {
    constexpr std::int64_t second_ns = 1'000'000'000;
    return {.it_interval = {.tv_sec = period_ns / second_ns, .tv_nsec = period_ns % second_ns},
            .it_value = {.tv_sec = first_ns / second_ns, .tv_nsec = first_ns % second_ns}};
}

class TimedThread final : public ThreadSource {
public:
    TimedThread(pid_t thread, int signal, std::int64_t period_ns, std::unique_ptr<TimerRing> ring, timer_t timer,
                std::shared_ptr<bool> signal_stays)
        : thread_{thread},
          signal_{signal},
          period_ns_{period_ns},
          ring_{std::move(ring)},
          timer_{timer},
          signal_stays_{std::move(signal_stays)} {}
    TimedThread(const TimedThread&) = delete;
    TimedThread& operator=(const TimedThread&) = delete;

    ~TimedThread() override {
        TimedThread::end();
        while (!gone_ && !ring_->farewell_said() && std::chrono::steady_clock::now() < waits_until_)
            std::this_thread::sleep_for(50us);
        // A handler that may still run needs its ring: leak the memory and keep the signal reserved.
        if (!gone_ && !ring_->farewell_said()) {
            *signal_stays_ = true;
            static_cast<void>(ring_.release());
        }
        __tsan_acquire(ring_.get());
    }

    std::uint64_t drain(RawSink& sink) override { return ring_->drain(sink); }

    /// Sends a last signal. A thread's real-time signals arrive in the order they were sent, so after it none is left.
    void end() noexcept override {
        if (ended_)
            return;
        ended_ = true;
        waits_until_ = std::chrono::steady_clock::now() + longest_farewell;
        timer_delete(timer_);
        siginfo_t last{};
        last.si_signo = signal_;
        last.si_code = SI_QUEUE;
        last.si_pid = getpid();
        last.si_uid = getuid();
        last.si_value.sival_ptr = ring_.get();
        gone_ = syscall(SYS_rt_tgsigqueueinfo, getpid(), thread_, signal_, &last) != 0 && errno == ESRCH;
    }

    [[nodiscard]] std::int64_t own_ns() const noexcept override { return ring_->own_ns(); }

    void on_cpu_time(std::int64_t cpu_ns, std::int64_t since_ns) noexcept override {
        constexpr std::int64_t price_of_a_tick_ns = 10'000, idle_ns = 50'000;
        const std::uint64_t ticks = ring_->ticks();
        const auto ticked = static_cast<std::int64_t>(ticks - std::exchange(ticks_, ticks));
        const bool busy = since_ns > idle_ns + ticked * price_of_a_tick_ns;
        if (ended_ || busy == armed_)   // after end() the timer is deleted, and its id may belong to another
            return;
        if (busy)
            ring_->begin_at(cpu_ns);
        const itimerspec pace = busy ? every(period_ns_, period_ns_) : itimerspec{};
        if (timer_settime(timer_, 0, &pace, nullptr) == 0)
            armed_ = busy;
    }

private:
    pid_t thread_;
    int signal_;
    std::int64_t period_ns_;
    std::unique_ptr<TimerRing> ring_;
    timer_t timer_;
    std::shared_ptr<bool> signal_stays_;
    std::uint64_t ticks_ = 0;
    std::chrono::steady_clock::time_point waits_until_;   // deadline for the farewell
    bool armed_ = true, ended_ = false, gone_ = false;
};

}   // namespace

ThreadTimers::ThreadTimers(std::uint32_t rate_hz, std::uint32_t ring_bytes, std::uint32_t max_depth)
    : rate_hz_{rate_hz}, ring_bytes_{ring_bytes}, max_depth_{max_depth}, signal_stays_{std::make_shared<bool>(false)} {
    for (int signal = SIGRTMAX - 1; signal >= SIGRTMIN; --signal) {
        struct sigaction before{};
        if (sigaction(signal, nullptr, &before) != 0 || (before.sa_flags & SA_SIGINFO) != 0 ||
            before.sa_handler != SIG_DFL)
            continue;
        struct sigaction action{};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
        if (sigaction(signal, &action, nullptr) == 0) {
            signal_ = signal;
            return;
        }
    }
    throw std::system_error{EBUSY, std::generic_category(), "sampling by timers: every real-time signal is taken"};
}

ThreadTimers::~ThreadTimers() {
    if (*signal_stays_)
        return;
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    sigemptyset(&action.sa_mask);
    sigaction(signal_, &action, nullptr);
}

std::unique_ptr<ThreadSource> ThreadTimers::add(pid_t thread) {
    if (blocks_signal(thread, signal_)) {
        errno = EACCES;
        return nullptr;
    }
    const std::int64_t period_ns = 1'000'000'000 / std::int64_t{rate_hz_};
    auto ring = std::make_unique<TimerRing>(ring_bytes_, max_depth_, period_ns);
    ring->begin_at(cpu_time_of(thread).value_or(0));
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal_;
    event.sigev_value.sival_ptr = ring.get();
    event._sigev_un._tid = thread;
    timer_t timer{};
    __tsan_release(ring.get());
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        return nullptr;
    auto source = std::make_unique<TimedThread>(thread, signal_, period_ns, std::move(ring), timer, signal_stays_);
    // The first tick depends on the thread's id, so that threads started together are not interrupted at once.
    const itimerspec pace = every(period_ns, 1 + (std::int64_t{thread} * 7919'000) % period_ns);
    if (timer_settime(timer, 0, &pace, nullptr) != 0) {
        const int error = errno;
        source.reset();
        errno = error;
    }
    return source;
}

}   // namespace drawpoint
