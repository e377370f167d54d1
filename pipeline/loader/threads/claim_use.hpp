#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/recorder/detail/reading_budget.hpp>
#include <drawpoint/instrumentation/host/detail/thread_usage.hpp>
#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>
#include <drawpoint/pipeline/loader/machine/detail/worker_costs.hpp>

namespace drawpoint {

/// Measures how some of a worker's claims spend their time, as many as the reading budget allows. One for each worker.
class ClaimUse {
public:
    /// A claim begins. True: it is measured, and end() must follow.
    [[nodiscard]] bool begin(const AnyClock& clock) noexcept {
        if (clock.is_manual() || !budget_.next())
            return false;
        // Reading the thread's CPU clock may cost the thread its core, so it is read first here and last in end().
        cpu_ns_ = ThreadUsage::cpu_ns();
        run_queue_ns_ = usage_.run_queue_ns();
        at_ns_ = clock.now_ns();
        return true;
    }
    void end(const AnyClock& clock) noexcept {
        const std::int64_t ns = clock.now_ns() - at_ns_, run_queue_ns = usage_.run_queue_ns(),
                           cpu_ns = std::max<std::int64_t>(ThreadUsage::cpu_ns() - cpu_ns_, 0);
        budget_.took(ns, readings_a_claim);
        if (run_queue_ns == no_stamp || run_queue_ns_ == no_stamp)
            return;   // waiting for a core would look like another wait
        const std::int64_t queued_ns = std::max<std::int64_t>(run_queue_ns - run_queue_ns_, 0);
        ++use_.claims;
        use_.computed_ns += static_cast<std::uint64_t>(cpu_ns);
        use_.queued_ns += static_cast<std::uint64_t>(queued_ns);
        use_.waited_ns += static_cast<std::uint64_t>(std::max<std::int64_t>(ns - cpu_ns - queued_ns, 0));
    }
    [[nodiscard]] WorkerUse take() noexcept { return std::exchange(use_, {}); }

private:
    ThreadUsage usage_;
    ReadingBudget budget_;
    std::int64_t run_queue_ns_ = no_stamp, cpu_ns_ = 0, at_ns_ = 0;   // when the claim began
    WorkerUse use_;
};

}   // namespace drawpoint
