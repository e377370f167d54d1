#pragma once

#include <array>
#include <cstdint>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/ledger/records.hpp>

namespace drawpoint {

/// How a worker spent the time of one stage of a sample, as far as it was measured. If both are known, the rest of `ns`
/// was waiting for something other than a core.
struct StageSpending {
    std::int64_t ns = 0;                                       ///< without `read_ns`
    std::int64_t read_ns = 0;                                  ///< waiting for a read ahead, at the begin of the stage
    std::int64_t cpu_ns = no_stamp, run_queue_ns = no_stamp;   ///< of `ns`; `no_stamp`: not known
};

/// By stage, for the first `max_stages`. The CPU time is the stage's own if it was measured, else a share of the
/// sample's in proportion to the stage's length; the time in the run queue is shared out in proportion to the stages'
/// time off the core.
[[nodiscard]] std::array<StageSpending, max_stages> spending_of(const Ledger&, const SampleRow&) noexcept;

/// round(ns × part / whole), 0 … ns; `whole` > 0. The error is below a nanosecond up to 2^50.
[[nodiscard]] std::int64_t proportion(std::int64_t ns, std::int64_t part, std::int64_t whole) noexcept;

}   // namespace drawpoint
