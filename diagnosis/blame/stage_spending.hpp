#pragma once

#include <array>
#include <cstdint>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/recorder/records.hpp>

namespace drawpoint {

/// How a stage of one sample spent its time on its worker, as far as it was measured. The rest of `ns`, where both are
/// known, it waited for something else than a core.
struct StageSpending {
    std::int64_t ns = 0;                                       ///< without what it waited for a read ahead
    std::int64_t read_ns = 0;                                  ///< that
    std::int64_t cpu_ns = no_stamp, run_queue_ns = no_stamp;   ///< of `ns`; `no_stamp`: not known
};

/// By stage, the first `max_stages`. A stage's own CPU time where it was measured, else its share of the sample's by
/// length; the time in the run queue by the stages' time off the core.
[[nodiscard]] std::array<StageSpending, max_stages> spending_of(const Ledger&, const SampleRow&) noexcept;

/// round(ns × part / whole), 0 … ns; `whole` > 0. Error below a nanosecond up to 2^50.
[[nodiscard]] std::int64_t proportion(std::int64_t ns, std::int64_t part, std::int64_t whole) noexcept;

}   // namespace drawpoint
