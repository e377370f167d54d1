#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <drawpoint/bench/experiment/contender.hpp>

namespace drawpoint::bench {

/// What is measured of a process from outside, in this order; the times are compared.
[[nodiscard]] std::span<const Metric> process_metrics();

/// Measures this process, with the children that it waits for, between start() and stop(), which may be called again
/// and again.
class ProcessMeter {
public:
    void start() noexcept { before_ = read(); }
    void stop() noexcept;
    /// A value for each of process_metrics(), for one of so many runs. Times are at least 1 ns a run, so that ratios
    /// exist.
    [[nodiscard]] std::vector<double> values(std::size_t runs) const;

private:
    struct Reading {
        double wall = 0, cpu = 0, faults = 0, switches = 0;
    };
    static Reading read() noexcept;

    Reading before_, sum_;
};

}   // namespace drawpoint::bench
