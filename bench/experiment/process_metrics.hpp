#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include <sys/resource.h>

#include <drawpoint/bench/experiment/contender.hpp>

namespace drawpoint::bench {

/// What is measured of a process from outside, in this order; the times are compared.
[[nodiscard]] std::span<const Metric> process_metrics();

/// Measures this process, with the children that it waits for, from its construction on.
class ProcessMeter {
public:
    ProcessMeter() noexcept;
    /// A value for each of process_metrics(), for one of so many runs. Times are at least 1 ns a run, so that ratios
    /// exist.
    [[nodiscard]] std::vector<double> values(std::size_t runs) const;

private:
    rusage own_{}, children_{};
    double cpu_ = 0;
    std::chrono::steady_clock::time_point begin_;
};

}   // namespace drawpoint::bench
