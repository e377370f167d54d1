#pragma once

#include <algorithm>
#include <cstdint>

#include <drawpoint/instrumentation/host/detail/thread_usage.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/recorder/detail/reading_budget.hpp>

namespace drawpoint {

/// Measures how collating spends its time, of as many batches as the reading budget allows. One for each worker.
class CollateUse {
public:
    struct Times {
        std::int64_t cpu_ns = 0, run_queue_ns = no_stamp;   // run_queue_ns: `no_stamp` where the system does not tell
    };

    /// Collating begins. True: it is measured, and end() must follow.
    [[nodiscard]] bool begin() noexcept {
        if (!budget_.next())
            return false;
        run_queue_ns_ = usage_.run_queue_ns();
        cpu_ns_ = ThreadUsage::cpu_ns();
        return true;
    }
    [[nodiscard]] Times end() noexcept {
        Times times{.cpu_ns = std::max<std::int64_t>(ThreadUsage::cpu_ns() - cpu_ns_, 0)};
        if (const std::int64_t run_queue_ns = usage_.run_queue_ns();
            run_queue_ns != no_stamp && run_queue_ns_ != no_stamp)
            times.run_queue_ns = std::max<std::int64_t>(run_queue_ns - run_queue_ns_, 0);
        return times;
    }
    /// Collating took `ns`, measured or not.
    void took(std::int64_t ns) noexcept { budget_.took(ns, readings); }

private:
    static constexpr std::uint32_t readings = 6;   // those of the run queue cost more

    ThreadUsage usage_;
    ReadingBudget budget_;
    std::int64_t cpu_ns_ = 0, run_queue_ns_ = no_stamp;   // when it began
};

}   // namespace drawpoint
