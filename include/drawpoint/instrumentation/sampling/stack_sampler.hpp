#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include <drawpoint/instrumentation/recorder/recorder.hpp>

namespace drawpoint {

/// What interrupts the threads. `automatic`: `perf_event` where the system allows it, else `timers`.
enum class StackSamplerBackend : std::uint8_t { automatic, perf_event, timers };

/// "automatic", "perf_event" or "timers". Static storage.
[[nodiscard]] std::string_view name_of(StackSamplerBackend) noexcept;

struct StackSamplerOptions {
    std::uint32_t rate_hz = 999;         ///< samples per second of a thread's CPU time by perf_event, 1 … 10,000
    std::uint32_t timer_rate_hz = 249;   ///< the same by timers, whose signals cost more
    StackSamplerBackend backend = StackSamplerBackend::automatic;
    std::uint32_t ring_bytes = 128u << 10;   ///< per thread, a power of two ≥ 4096; samples are lost while it is full
    std::uint32_t max_depth = 127;           ///< frames kept per stack, 1 … 127, counted from the innermost
};
static_assert(std::is_trivially_destructible_v<StackSamplerOptions>);

/// Results and cost of sampling so far.
struct StackSamplerState {
    StackSamplerBackend backend = StackSamplerBackend::automatic;   ///< `automatic`: not started yet
    std::string refused;           ///< why `automatic` could not use perf_event; empty: it could
    bool kernel = false;           ///< whether time inside the kernel is sampled too
    std::uint64_t samples = 0;     ///< samples passed to the recorder
    std::uint64_t lost = 0;        ///< samples lost because a ring was full, or by the kernel's own count
    std::uint32_t threads = 0;     ///< threads sampled so far
    std::uint32_t unsampled = 0;   ///< threads that block the signal, or beyond a limit of the system
    double sampled_cpu_s = 0.0;    ///< CPU time of the threads while they were sampled
    double own_cpu_s = 0.0;        ///< of the sampler's thread and of signal handlers, without perf_event's interrupts
    /// Achieved samples, with the lost ones, per second of the sampled threads' CPU time; 0 before there is any.
    [[nodiscard]] double rate_hz() const noexcept {
        return sampled_cpu_s > 0.0 ? static_cast<double>(samples + lost) / sampled_cpu_s : 0.0;
    }
    /// The sampler's part of its own and the sampled threads' CPU time.
    [[nodiscard]] double share_of_cpu() const noexcept {
        return sampled_cpu_s + own_cpu_s > 0.0 ? own_cpu_s / (sampled_cpu_s + own_cpu_s) : 0.0;
    }
};

/// Interrupts every thread of the process at a constant rate per second of its CPU time, and records its call stack as
/// a `StackSampleRow`. A sleeping thread is not sampled. Threads started later are found within 100 ms; shorter-lived
/// ones are missed. A thread of its own drains the rings, looks up symbols and pushes rows; its cost, the back end and
/// the achieved rate are facts of the recording (`facts::sampling_*`).
///
/// Stacks are walked along frame pointers: for code built without `-fno-omit-frame-pointer
/// -mno-omit-leaf-frame-pointer` (LibTorch, the C library) a stack has the innermost function and a truncated rest. The
/// back end `timers` interrupts with an unused real-time signal and SA_RESTART: system calls that never restart (poll,
/// nanosleep) return EINTR a little more often. The recorder must outlive it. Call start() and stop() from one thread
/// at a time; only the system's limits prevent two samplers at once.
class StackSampler {
public:
    /// Throws std::invalid_argument naming the option that is out of range.
    explicit StackSampler(Recorder&, const StackSamplerOptions& = {});
    /// Calls `stop()`.
    ~StackSampler();
    StackSampler(const StackSampler&) = delete;
    StackSampler& operator=(const StackSampler&) = delete;

    /// Samples all present threads and later ones from now on. Does nothing while it runs. Throws std::system_error
    /// when the requested back end is refused, naming the system's setting that refuses it.
    void start();
    /// Empties the rings, sets the facts and joins the thread. Takes about 100 ms plus the remaining symbol look-ups.
    /// Does nothing when it does not run. Can be started again.
    void stop() noexcept;

    /// Status at the last drain (at most 100 ms ago). Any thread.
    [[nodiscard]] StackSamplerState state() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
