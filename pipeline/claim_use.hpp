#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/ledger.hpp>
#include <drawpoint/instrumentation/reading_budget.hpp>
#include <drawpoint/instrumentation/thread_usage.hpp>

namespace drawpoint {

/// What a worker's claims computed, and waited for anything but a core: of those measured, as many as the budget allows, since
/// it was taken last. One thread at a time.
class ClaimUse {
public:
    static constexpr std::uint32_t readings = 6;

    struct Sum {
        std::uint64_t claims = 0, computed_ns = 0, waited_ns = 0;
    };

    /// Whether the claim that begins is measured: then end() follows.
    [[nodiscard]] bool begin(const AnyClock& clock) noexcept {
        if (!budget_.next())
            return false;
        queued_ns_ = usage_.run_queue_ns();
        cpu_ns_ = ThreadUsage::cpu_ns();
        at_ns_ = clock.now_ns();   // reading the thread's clock may cost it its core
        return true;
    }
    void end(const AnyClock& clock) noexcept {
        const std::int64_t ns = clock.now_ns() - at_ns_, cpu_ns = ThreadUsage::cpu_ns() - cpu_ns_,
                           queued_ns = usage_.run_queue_ns();
        budget_.took(ns, readings);
        if (queued_ns == no_stamp || queued_ns_ == no_stamp)
            return;   // else a wait for a core would look like another
        ++sum_.claims;
        sum_.computed_ns += static_cast<std::uint64_t>(std::max<std::int64_t>(cpu_ns, 0));
        sum_.waited_ns += static_cast<std::uint64_t>(std::max<std::int64_t>(ns - cpu_ns - (queued_ns - queued_ns_), 0));
    }
    [[nodiscard]] Sum take() noexcept { return std::exchange(sum_, {}); }

private:
    ThreadUsage usage_;
    ReadingBudget budget_;
    std::int64_t queued_ns_ = no_stamp, cpu_ns_ = 0, at_ns_ = 0;   // when it began
    Sum sum_;
};

}   // namespace drawpoint
