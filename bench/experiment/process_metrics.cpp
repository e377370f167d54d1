#include "bench/experiment/process_metrics.hpp"

#include <algorithm>
#include <array>
#include <chrono>

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
                                Metric{"page faults", count}, Metric{"context switches", number}};
    return all;
}

ProcessMeter::Reading ProcessMeter::read() noexcept {
    rusage own{}, children{};
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    return {.wall = now.count(),
            .cpu = process_cpu_seconds() + cpu_seconds(children),
            .faults = static_cast<double>(faults_of(own) + faults_of(children)),
            .switches = static_cast<double>(switches_of(own) + switches_of(children))};
}

void ProcessMeter::stop() noexcept {
    const Reading after = read();
    sum_.wall += after.wall - before_.wall;
    sum_.cpu += after.cpu - before_.cpu;
    sum_.faults += after.faults - before_.faults;
    sum_.switches += after.switches - before_.switches;
}

std::vector<double> ProcessMeter::values(std::size_t runs) const {
    const auto count = static_cast<double>(runs);
    return {std::max(sum_.wall / count, 1e-9), std::max(sum_.cpu / count, 1e-9), sum_.faults / count,
            sum_.switches / count};
}

}   // namespace drawpoint::bench
