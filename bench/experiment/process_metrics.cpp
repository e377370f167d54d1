#include "bench/experiment/process_metrics.hpp"

#include <algorithm>
#include <array>

#include <time.h>

#include "bench/experiment/process.hpp"

namespace drawpoint::bench {

namespace {

double process_cpu_seconds() noexcept {   // finer than getrusage()
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

long faults_of(const rusage& usage) noexcept { return usage.ru_minflt + usage.ru_majflt; }
long switches_of(const rusage& usage) noexcept { return usage.ru_nvcsw + usage.ru_nivcsw; }

}   // namespace

std::span<const Metric> process_metrics() {
    using enum Metric::Unit;
    static const std::array all{Metric{"wall time", seconds, true}, Metric{"CPU time", seconds, true},
                                Metric{"page faults", count}, Metric{"context switches", count}};
    return all;
}

ProcessMeter::ProcessMeter() noexcept {
    getrusage(RUSAGE_SELF, &own_);
    getrusage(RUSAGE_CHILDREN, &children_);
    cpu_ = process_cpu_seconds();
    begin_ = std::chrono::steady_clock::now();
}

std::vector<double> ProcessMeter::values(std::size_t runs) const {
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin_;
    const double cpu = process_cpu_seconds() - cpu_;
    rusage own{}, children{};
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    const auto a_run = [&](double risen) { return risen / static_cast<double>(runs); };
    const auto risen = [&](long (*count)(const rusage&) noexcept) {
        return a_run(static_cast<double>(count(own) - count(own_) + count(children) - count(children_)));
    };
    return {std::max(a_run(wall.count()), 1e-9),
            std::max(a_run(cpu + cpu_seconds(children) - cpu_seconds(children_)), 1e-9), risen(faults_of),
            risen(switches_of)};
}

}   // namespace drawpoint::bench
