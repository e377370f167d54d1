#pragma once

#include <cmath>
#include <functional>
#include <string>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/facts.hpp>

/// Ledgers of a run on an invented machine: a host row every 200 ms, steps of 10 ms.
namespace drawpoint::host_run {

inline constexpr std::int64_t ms = 1'000'000, s = 1'000 * ms, start_ns = 1'000 * s;

/// Load of the machine `s` seconds after the start, in cores.
using Load = std::function<double(double s)>;
inline Load constant(double cores) {
    return [cores](double) { return cores; };
}

/// Adds rows up to `end_s`, exact to the nanosecond; `tick_ns` rounds the times that the kernel counts in ticks.
inline void add_host(Ledger& ledger, double end_s, const Load& own, const Load& foreign, std::int64_t tick_ns = 1,
                     double cores = 2) {
    ledger.set_fact(facts::host_cores, std::to_string(cores));
    ledger.set_fact(facts::host_affinity_cores, std::to_string(static_cast<int>(std::ceil(cores))));
    double own_ns = 5e9, busy_ns = 7e9;
    for (int i = 0; i * 0.2 <= end_s + 1e-9; ++i) {
        ledger.host.push_back({.at_ns = start_ns + i * 200 * ms,
                               .own_cpu_ns = std::llround(own_ns),
                               .busy_ns = std::llround(busy_ns) / tick_ns * tick_ns,
                               .steal_ns = 0});
        const double middle_s = i * 0.2 + 0.1;
        own_ns += own(middle_s) * 200e6;
        busy_ns += (own(middle_s) + foreign(middle_s)) * 200e6;
    }
}

/// Adds a training step after the last one, without its pieces.
inline StepRow& add_step(Ledger& ledger, std::int64_t draw_ns, std::int64_t batch_ns) {
    const std::int64_t begin_ns = ledger.steps.empty() ? start_ns
                                                       : ledger.steps.back().draw_begin_ns +
                                                             ledger.steps.back().draw_ns + ledger.steps.back().batch_ns;
    const auto number = static_cast<std::uint32_t>(ledger.steps.size());
    return ledger.steps.emplace_back(StepRow{.step = number,
                                             .batch = number,
                                             .phase = Phase::train,
                                             .size = 8,
                                             .draw_begin_ns = begin_ns,
                                             .draw_ns = draw_ns,
                                             .batch_ns = batch_ns});
}

}   // namespace drawpoint::host_run
