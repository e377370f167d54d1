#pragma once

#include <array>
#include <span>

#include <drawpoint/bench/experiment/contender.hpp>

namespace drawpoint::bench {

/// What is measured of a process from outside, in this order; the times are compared.
[[nodiscard]] inline std::span<const Metric> process_metrics() {
    using enum Metric::Unit;
    static const std::array all{Metric{"wall time", seconds, true}, Metric{"CPU time", seconds, true},
                                Metric{"page faults", count}, Metric{"context switches", count}};
    return all;
}

}   // namespace drawpoint::bench
