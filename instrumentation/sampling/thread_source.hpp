#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>

namespace drawpoint {

/// A moment of a thread as a back end saw it.
struct RawSample {
    std::int64_t at_ns = 0;   ///< CLOCK_MONOTONIC
    std::int64_t weight_ns = 0;
    bool in_kernel = false;
    std::span<const std::uint64_t> addresses;   ///< innermost first; only for the time of the call
};

/// Takes raw samples.
class RawSink {
public:
    virtual void take(const RawSample&) = 0;

protected:
    ~RawSink() = default;
};

/// One thread under sampling, from construction on. Of the sampler's thread.
class ThreadSource {
public:
    virtual ~ThreadSource() = default;
    /// Hands over what has come since the last time. Returns how many were lost in between.
    virtual std::uint64_t drain(RawSink&) = 0;
    /// No sample comes after this; `drain` may follow.
    virtual void end() noexcept = 0;
    /// CPU time the thread itself has spent on being sampled, as far as it can be measured.
    [[nodiscard]] virtual std::int64_t own_ns() const noexcept { return 0; }
    /// The thread's CPU time now and how much of it came since the last call.
    virtual void on_cpu_time(std::int64_t /*cpu_ns*/, std::int64_t /*since_ns*/) noexcept {}
};

/// A way of interrupting threads.
class SamplingBackend {
public:
    virtual ~SamplingBackend() = default;
    /// Begins to sample a thread; nullptr and errno when it can't be.
    [[nodiscard]] virtual std::unique_ptr<ThreadSource> add(pid_t thread) = 0;
    /// Time inside the kernel is seen.
    [[nodiscard]] virtual bool kernel() const noexcept = 0;
};

}   // namespace drawpoint
