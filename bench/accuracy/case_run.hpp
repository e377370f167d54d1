#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include "case.hpp"
#include "rig.hpp"

namespace drawpoint::bench {

/// One real run.
struct CaseRun {
    double batches_per_s = 0;              ///< of the steps after warm-up, by a clock of the loop's own
    std::uint64_t peak_bytes = 0;          ///< of the loader's memory
    Ledger ledger;                         ///< what was recorded
    std::vector<std::int64_t> begins_ns;   ///< of each step, by the same clock
};

/// Steps at the begin that do not count.
[[nodiscard]] std::size_t warm_up_steps(const Case&) noexcept;

struct CaseRunOptions {
    /// Over the samples that `Case::steps` batches draw: so many times as many steps come after the warm-up.
    std::size_t passes = 1;
    std::filesystem::path recording;   ///< is written there, too; empty: nowhere
    double neighbour = 0;              ///< cores that another process takes meanwhile
};

/// Trains nothing on the case's pipeline: the product's own loader, loop and recorder, threads and all, with the case's
/// disturbance. Throws what they throw.
[[nodiscard]] CaseRun run_case(const Case&, Rig&, const CaseRunOptions& = {});

/// A recording that run_case wrote, as the ledger that it returned. Throws what read_trace throws.
[[nodiscard]] Ledger recorded_case(const Case&, const std::filesystem::path& recording);

/// The ledger as a clock would have left it that jumped by `by_ns` > 0 at `at_ns`.
void step_clock(Ledger&, std::int64_t at_ns, std::int64_t by_ns);

}   // namespace drawpoint::bench
