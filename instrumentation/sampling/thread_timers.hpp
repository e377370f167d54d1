#pragma once

#include <cstdint>
#include <memory>

#include "instrumentation/sampling/thread_source.hpp"

namespace drawpoint {

/// Samples by a timer and a signal per thread: for where perf_event is refused. Timers run on the monotonic clock,
/// since those of CPU clocks go no finer than the kernel's tick; a thread's samples weigh the CPU time it used since
/// the one before, and a thread that sleeps has its timer stopped until it runs again.
class ThreadTimers final : public SamplingBackend {
public:
    /// Takes a free real-time signal. Throws std::system_error when there is none.
    ThreadTimers(std::uint32_t rate_hz, std::uint32_t ring_bytes, std::uint32_t max_depth);
    /// Gives the signal back, once every source is gone.
    ~ThreadTimers() override;
    ThreadTimers(const ThreadTimers&) = delete;
    ThreadTimers& operator=(const ThreadTimers&) = delete;

    [[nodiscard]] std::unique_ptr<ThreadSource> add(pid_t thread) override;
    [[nodiscard]] bool kernel() const noexcept override { return true; }

private:
    std::uint32_t rate_hz_, ring_bytes_, max_depth_;
    int signal_ = 0;
    std::shared_ptr<bool> signal_stays_;   // a handler may still come: the signal stays taken
};

}   // namespace drawpoint
