#pragma once

#include <cstdint>
#include <memory>

#include "instrumentation/sampling/thread_source.hpp"

namespace drawpoint {

/// Samples by a timer and a signal per thread, where perf_event is refused. The timers use the monotonic clock, since
/// those on CPU clocks are no finer than the kernel's tick. A sample's weight is the CPU time that its thread used
/// since the previous one; the timer of a sleeping thread is stopped until it runs again.
class ThreadTimers final : public SamplingBackend {
public:
    /// Reserves an unused real-time signal. Throws std::system_error if there is none.
    ThreadTimers(std::uint32_t rate_hz, std::uint32_t ring_bytes, std::uint32_t max_depth);
    /// Releases the signal; every source must be gone.
    ~ThreadTimers() override;
    ThreadTimers(const ThreadTimers&) = delete;
    ThreadTimers& operator=(const ThreadTimers&) = delete;

    [[nodiscard]] std::unique_ptr<ThreadSource> add(pid_t thread) override;
    [[nodiscard]] bool kernel() const noexcept override { return true; }

private:
    std::uint32_t rate_hz_, ring_bytes_, max_depth_;
    int signal_ = 0;
    std::shared_ptr<bool> signal_stays_;   // a handler may still run: the signal stays reserved
};

}   // namespace drawpoint
