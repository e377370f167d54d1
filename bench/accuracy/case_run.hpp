#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include "case.hpp"
#include "rig.hpp"

namespace drawpoint::bench {

/// The result of one real run.
struct CaseRun {
    double batches_per_s = 0;              ///< over the steps after warm-up, by the loop's own clock
    std::uint64_t peak_bytes = 0;          ///< of the loader's memory, at its peak
    Ledger ledger;                         ///< the recording
    std::vector<std::int64_t> begins_ns;   ///< when each step began, by the same clock
};

/// Number of steps at the beginning that do not count.
[[nodiscard]] std::size_t warm_up_steps(const Case&) noexcept;

struct CaseRunOptions {
    /// How often to go over the samples of `Case::steps` batches: `passes` times `steps` steps follow the warm-up.
    std::size_t passes = 1;
    std::filesystem::path recording;   ///< the recording is also written to this file; empty: it is not
    double neighbour = 0;              ///< cores that another process takes during the run
};

/// Runs the case's pipeline without a model, using the real loader, loop and recorder with all their threads and the
/// case's disturbance. Throws what they throw.
[[nodiscard]] CaseRun run_case(const Case&, Rig&, const CaseRunOptions& = {});

/// Reads a recording that run_case wrote; returns the same ledger as run_case. Throws what read_trace throws.
[[nodiscard]] Ledger recorded_case(const Case&, const std::filesystem::path& recording);

/// Changes the ledger as if its clock had jumped by `by_ns` > 0 at `at_ns`.
void step_clock(Ledger&, std::int64_t at_ns, std::int64_t by_ns);

}   // namespace drawpoint::bench
