#pragma once

#include <cstdint>
#include <string>

#include <drawpoint/instrumentation/trace/trace.hpp>

namespace drawpoint::cli {

/// Reads RUN: a `.pftrace`, or a PyTorch Chrome trace if its name ends in .json or .json.gz. `most_bytes`: as in
/// read_trace(). Throws as the readers do.
[[nodiscard]] ReadTrace read_run(const std::string& file, std::uint64_t most_bytes = 0);

/// What a report needs of a recording of any length: beyond it, the older steps are folded into totals.
inline constexpr std::uint64_t most_report_bytes = 48u << 20;

/// The ledger of RUN. Unless `every_row`, the older steps of one with more than `most_report_bytes` of rows are folded.
/// Complains of what the file lacks. Throws Failure if there are no steps, nor, with `or_operators`, any operators.
[[nodiscard]] Ledger read_steps(const std::string& file, bool or_operators = false, bool every_row = false);

}   // namespace drawpoint::cli
