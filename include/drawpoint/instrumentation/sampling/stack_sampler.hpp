#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include <drawpoint/instrumentation/recorder/recorder.hpp>

namespace drawpoint {

/// Who interrupts a thread to see where it is. `automatic`: `perf_event` where the system allows it, else `timers`.
enum class StackSamplerBackend : std::uint8_t { automatic, perf_event, timers };

/// "automatic", "perf_event" or "timers". Static storage.
[[nodiscard]] std::string_view name_of(StackSamplerBackend) noexcept;

struct StackSamplerOptions {
    std::uint32_t rate_hz = 999;         ///< samples per second of a thread's CPU time by perf_event, 1 … 10,000
    std::uint32_t timer_rate_hz = 249;   ///< the same by timers, whose signals cost more
    StackSamplerBackend backend = StackSamplerBackend::automatic;
    std::uint32_t ring_bytes = 128u << 10;   ///< per thread, a power of two ≥ 4096: what comes while it is full is lost
    std::uint32_t max_depth = 127;           ///< frames kept of a stack, 1 … 127, counted from the innermost
};
static_assert(std::is_trivially_destructible_v<StackSamplerOptions>);

/// What sampling has done and cost so far.
struct StackSamplerState {
    StackSamplerBackend backend = StackSamplerBackend::automatic;   ///< `automatic`: not started yet
    std::string refused;           ///< why `automatic` could not take perf_event; empty: it did
    bool kernel = false;           ///< time inside the kernel is sampled too; false: it is missing from the samples
    std::uint64_t samples = 0;     ///< pushed into the recorder
    std::uint64_t lost = 0;        ///< a ring was full, or the kernel said so
    std::uint32_t threads = 0;     ///< sampled so far
    std::uint32_t unsampled = 0;   ///< threads that could not be: they block the signal, or a system limit was met
    double sampled_cpu_s = 0.0;    ///< CPU time of the threads while they were sampled
    double own_cpu_s = 0.0;        ///< of the sampler's thread and of signal handlers; perf_event's interrupts not
    [[nodiscard]] double rate_hz() const noexcept {
        return sampled_cpu_s > 0.0 ? static_cast<double>(samples + lost) / sampled_cpu_s : 0.0;
    }
    [[nodiscard]] double share_of_cpu() const noexcept {
        return sampled_cpu_s + own_cpu_s > 0.0 ? own_cpu_s / (sampled_cpu_s + own_cpu_s) : 0.0;
    }
};

/// Interrupts every thread of the process at an even rate per second of its CPU time, notes where it is (the call
/// stack) and pushes it into the recorder as `StackSampleRow`s. A thread that sleeps is not sampled. Threads that begin
/// later are found within 100 ms; shorter ones are missed. One thread of its own drains, symbolises and pushes; what
/// that cost, the back end and the rate obtained are facts of the recording (`facts::sampling_*`).
///
/// Stacks are walked along frame pointers: code built without `-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer`
/// (LibTorch, the C library) gives its innermost function and a truncated rest. The back end `timers` interrupts with a
/// real-time signal that nobody else handles, with SA_RESTART: system calls that never restart (poll, nanosleep) return
/// EINTR a little more often. The recorder outlives it. start() and stop() from one thread at a time; two samplers at
/// once are refused only by the system's limits.
class StackSampler {
public:
    /// Throws std::invalid_argument naming the option that is out of range.
    explicit StackSampler(Recorder&, const StackSamplerOptions& = {});
    /// `stop()`s.
    ~StackSampler();
    StackSampler(const StackSampler&) = delete;
    StackSampler& operator=(const StackSampler&) = delete;

    /// Samples every thread there is from here on, and later ones. Does nothing while it runs. Throws std::system_error
    /// when the back end asked for is refused, naming the system's setting that refuses it.
    void start();
    /// Takes what the rings hold, sets the facts, joins. Bounded: some 100 ms beyond the symbols still to be looked up.
    /// Does nothing when it does not run; may be started again.
    void stop() noexcept;

    /// As of the last drain (at most 100 ms ago). Any thread.
    [[nodiscard]] StackSamplerState state() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
