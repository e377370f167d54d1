#include <drawpoint/instrumentation/clock.hpp>

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace drawpoint {
namespace {

#if defined(__x86_64__)
struct Pair {
    std::uint64_t ticks = 0;
    std::int64_t ns = 0;
};

/// Both clocks read together: of several tries the one that took the fewest ticks.
Pair read_both() noexcept {
    Pair best;
    std::uint64_t tightest = ~std::uint64_t{0};
    for (int attempt = 0; attempt < 32; ++attempt) {
        const std::uint64_t before = __rdtsc();
        const std::int64_t ns = SteadyClock{}.now_ns();
        const std::uint64_t after = __rdtsc();
        if (after - before < tightest) {
            tightest = after - before;
            best = {before + (after - before) / 2, ns};
        }
    }
    return best;
}

/// Read when the program is loaded, so that a clock made later has its calibration's time behind it already.
/// Zero only for a clock made before, by another file's initializer.
const Pair at_load = read_both();
#endif

}   // namespace

#if defined(__x86_64__)
TscClock::TscClock() noexcept {
    constexpr std::int64_t least_ns = 2'000'000;
    const Pair first = at_load.ticks != 0 ? at_load : read_both();
    Pair second = read_both();
    while (second.ns - first.ns < least_ns) {   // the first batch waits for it
        timespec pause{.tv_sec = 0, .tv_nsec = least_ns - (second.ns - first.ns)};
        nanosleep(&pause, nullptr);
        second = read_both();
    }
    base_ticks_ = second.ticks;
    base_ns_ = second.ns;
    multiplier_ = static_cast<std::uint64_t>((static_cast<detail::UInt128>(second.ns - first.ns) << 32) /
                                             (second.ticks - first.ticks));
}

bool TscClock::available() noexcept {
    unsigned a = 0, b = 0, c = 0, d = 0;
    // Leaf 8000_0007, bit 8 of edx: the counter is invariant, that is, constant and running through sleep states.
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}
#else
TscClock::TscClock() noexcept = default;
bool TscClock::available() noexcept { return false; }
#endif

AnyClock::AnyClock() noexcept : kind_{Kind::steady} {
    if (TscClock::available()) {
        tsc_ = TscClock{};
        kind_ = Kind::tsc;
    }
}

const char* AnyClock::name() const noexcept {
    switch (kind_) {
    case Kind::tsc: return "tsc";
    case Kind::manual: return "manual";
    case Kind::steady: break;
    }
    return "steady";
}

}   // namespace drawpoint
