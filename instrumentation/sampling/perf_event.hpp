#pragma once

#include <cstdint>
#include <memory>

#include "instrumentation/sampling/thread_source.hpp"

namespace drawpoint {

/// Samples by the kernel's perf_event: a software event on each thread's CPU clock, whose interrupt walks the stack.
class PerfEvents final : public SamplingBackend {
public:
    /// Throws std::system_error naming the system's setting that refuses perf_event.
    PerfEvents(std::uint32_t rate_hz, std::uint32_t ring_bytes, std::uint32_t max_depth);

    [[nodiscard]] std::unique_ptr<ThreadSource> add(pid_t thread) override;
    [[nodiscard]] bool kernel() const noexcept override { return kernel_; }

private:
    std::uint32_t rate_hz_, ring_bytes_, max_depth_;
    bool kernel_ = true;
};

}   // namespace drawpoint
