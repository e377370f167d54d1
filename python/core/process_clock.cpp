#include "python/core/process_clock.hpp"

namespace drawpoint::python {
namespace {

AnyClock& clock() noexcept {
    static AnyClock of_process;
    return of_process;
}

}   // namespace

const AnyClock& process_clock() noexcept { return clock(); }

ClockScale clock_scale() noexcept {
    const TscClock* const tsc = clock().tsc();
    if (tsc == nullptr)
        return std::nullopt;
    const TscClock::Scale scale = tsc->scale();
    return std::array{static_cast<std::int64_t>(scale.base_ticks), static_cast<std::int64_t>(scale.multiplier),
                      scale.base_ns};
}

void set_clock_scale(const ClockScale& scale) noexcept {
    if (scale)
        clock() = AnyClock{TscClock{TscClock::Scale{.base_ticks = static_cast<std::uint64_t>((*scale)[0]),
                                                    .multiplier = static_cast<std::uint64_t>((*scale)[1]),
                                                    .base_ns = (*scale)[2]}}};
}

}   // namespace drawpoint::python
