#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>

namespace drawpoint {

/// A sample as a back end delivers it.
struct RawSample {
    std::int64_t at_ns = 0;   ///< CLOCK_MONOTONIC
    std::int64_t weight_ns = 0;
    bool in_kernel = false;
    std::span<const std::uint64_t> addresses;   ///< innermost first; valid only during the call
};

/// Receives raw samples.
class RawSink {
public:
    virtual void take(const RawSample&) = 0;

protected:
    ~RawSink() = default;
};

/// One thread that is sampled from construction on. For the sampler's thread only.
class ThreadSource {
public:
    virtual ~ThreadSource() = default;
    /// Delivers the samples since the last call. Returns how many were lost in between.
    virtual std::uint64_t drain(RawSink&) = 0;
    /// Stops sampling; `drain` may follow.
    virtual void end() noexcept = 0;
    /// CPU time that the thread itself has spent on being sampled, where it can be measured.
    [[nodiscard]] virtual std::int64_t own_ns() const noexcept { return 0; }
    /// Informs about the thread's CPU time and how much of it was used since the last call.
    virtual void on_cpu_time(std::int64_t /*cpu_ns*/, std::int64_t /*since_ns*/) noexcept {}
};

/// A way of interrupting threads.
class SamplingBackend {
public:
    virtual ~SamplingBackend() = default;
    /// Begins to sample a thread; nullptr with errno set if that is not possible.
    [[nodiscard]] virtual std::unique_ptr<ThreadSource> add(pid_t thread) = 0;
    /// Whether time inside the kernel is sampled.
    [[nodiscard]] virtual bool kernel() const noexcept = 0;
};

}   // namespace drawpoint
