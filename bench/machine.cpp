#include "machine.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>

#include <drawpoint/instrumentation/host/host.hpp>
#include <sys/utsname.h>
#include <time.h>

namespace drawpoint::bench {

Machine this_machine() {
    Machine machine;
    std::ifstream cpuinfo{"/proc/cpuinfo"};
    for (std::string line; machine.cpu.empty() && std::getline(cpuinfo, line);)
        if (line.starts_with("model name") && line.find(": ") != std::string::npos)
            machine.cpu = line.substr(line.find(": ") + 2);
    utsname system{};
    if (uname(&system) == 0)
        machine.kernel = std::string{system.sysname} + " " + system.release;
    machine.compiler = __VERSION__;
    machine.cores_usable = static_cast<std::int64_t>(std::ceil(usable_cores()));
    return machine;
}

ProcessorTime processor_time() {
    ProcessorTime time;
    std::ifstream stat{"/proc/stat"};
    std::string name;
    stat >> name;
    std::uint64_t ticks = 0;
    for (int field = 0; field < 8 && stat >> ticks; ++field) {   // user nice system idle iowait irq softirq steal
        time.total += ticks;
        if (field == 7)
            time.stolen = ticks;
    }
    return time;
}

double process_cpu_seconds() noexcept {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double steal_share(const ProcessorTime& before, const ProcessorTime& after) noexcept {
    if (after.total <= before.total)
        return 0;
    return static_cast<double>(after.stolen - before.stolen) / static_cast<double>(after.total - before.total);
}

double load_average() {
    double load = -1;
    return getloadavg(&load, 1) == 1 ? load : -1;
}

}   // namespace drawpoint::bench
