#include "machine.hpp"

#include <cstdlib>
#include <fstream>
#include <string>

#include <time.h>

namespace drawpoint::bench {

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
