#pragma once

#include <string>

#include <drawpoint/instrumentation/trace/trace.hpp>

namespace drawpoint::cli {

/// Reads RUN: a `.pftrace`, or a PyTorch Chrome trace if its name ends in .json or .json.gz. Throws as the readers do.
[[nodiscard]] ReadTrace read_run(const std::string& file);

/// The ledger of RUN. Complains of what the file lacks. Throws Failure if there are no steps, nor, with `or_operators`,
/// any operators.
[[nodiscard]] Ledger read_steps(const std::string& file, bool or_operators = false);

}   // namespace drawpoint::cli
