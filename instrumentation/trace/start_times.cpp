#include "instrumentation/trace/start_times.hpp"

#include <limits>

namespace drawpoint {

std::uint64_t system_clock_ns(clockid_t clock) noexcept {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

StartTimes read_start_times(const AnyClock& clock) noexcept {
    StartTimes best;
    std::uint64_t tightest = std::numeric_limits<std::uint64_t>::max();
    for (int attempt = 0; attempt < 8; ++attempt) {
        StartTimes times;
        times.start_ns = clock.now_ns();
        times.monotonic_ns = system_clock_ns(CLOCK_MONOTONIC);
        times.boottime_ns = system_clock_ns(CLOCK_BOOTTIME);
        times.realtime_ns = system_clock_ns(CLOCK_REALTIME);
        const std::uint64_t took = system_clock_ns(CLOCK_MONOTONIC) - times.monotonic_ns;
        if (took < tightest) {
            tightest = took;
            best = times;
        }
    }
    return best;
}

}   // namespace drawpoint
